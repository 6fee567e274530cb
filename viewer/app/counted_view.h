#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "viewer/view/value_histogram.h"

namespace attnscope {

/// The values that a part of a map shows, counted anew when it has changed, on a thread of its own.
/// Only on the window's thread.
class CountedView {
 public:
  /// How much of a view is there: some tiles, all of them as well as they are by now, all for good.
  enum class Stage : uint8_t { some, all, settled };
  /// The view whose values are counted, and the tiles that have them.
  struct Key {
    HeadId head;
    std::optional<Against> against;
    MapRect rect;
    Pool pool = Pool::max;
    Quantity quantity = Quantity::weights;
    std::vector<std::shared_ptr<const MapTile>> tiles;
    Stage stage = Stage::some;
    /// True where the counts of `other` do for this one: the same view with the same tiles, or with
    /// some tiles while it is not settled. So colours stand still while a map refines.
    bool is_counted_by(const Key& other) const;
  };
  /// Takes what was counted, and counts again where `key` is news; neither while the map is moved
  /// nor at each tile that comes, so that colours do not flicker. `wake` is called from another
  /// thread when it was counted.
  void take(Key key, bool moved, const std::function<void()>& wake);

  const ValueHistogram& histogram() const { return histogram_; }
  bool stale() const { return stale_; }

 private:
  ValueHistogram histogram_;
  Key key_, counting_key_;
  bool stale_ = false;
  std::future<ValueHistogram> counting_;  ///< of counting_key_
};

}  // namespace attnscope
