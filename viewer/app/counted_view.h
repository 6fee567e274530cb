#pragma once

#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "viewer/view/value_histogram.h"

namespace attnscope {

/// The values that a part of a map shows, counted anew when it has changed, on a thread of its own.
/// Only on the window's thread.
class CountedView {
 public:
  /// What is counted.
  struct Key {
    MapRect rect;
    Pool pool = Pool::max;
    Quantity quantity = Quantity::weights;
    std::vector<std::shared_ptr<const MapTile>> tiles;
    friend bool operator==(const Key&, const Key&) = default;
  };
  /// Takes what was counted, and counts again where `key` is news; not while the map is moved, so
  /// that colours do not flicker. `wake` is called from another thread when it was counted.
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
