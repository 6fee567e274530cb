#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/view/maps/map_source.h"
#include "viewer/view/maps/map_tile.h"

namespace attnscope {

/// The values that name a head: as recorded, but the batch item and the head as counted in the
/// call's tensors, as everywhere in the program; of an export, those that it was made of.
struct HeadValues {
  int64_t step = 0;
  int64_t layer = 0;
  CallKind kind = CallKind::self;
  std::string branch;
  int64_t batch = 0;
  int64_t head = 0;
  ModelPlace place = {};
  friend bool operator==(const HeadValues&, const HeadValues&) = default;
};

enum class HeadAxis : uint8_t { step, layer, kind, branch, batch, head, block, slot, chunk };
std::string_view head_axis_name(HeadAxis axis);

/// Finds heads of a capture, or of an export, by recorded values. A value.
class HeadPicker {
 public:
  /// Not empty.
  explicit HeadPicker(std::vector<MapSource> calls) : calls_(std::move(calls)) {
    chosen_ = {0, static_cast<int64_t>(calls_.size())};
  }
  /// Knows all of the calls, and picks among some of them: those of one of two captures.
  HeadPicker(std::vector<MapSource> calls, IndexRange chosen)
      : calls_(std::move(calls)), chosen_(chosen) {}

  const std::vector<MapSource>& calls() const { return calls_; }
  /// Adds calls behind those that there are, among which it picks as well.
  void add(const std::vector<MapSource>& more) {
    calls_.insert(calls_.end(), more.begin(), more.end());
    chosen_.end += static_cast<int64_t>(more.size());
  }
  /// True where some call has no layer.
  bool leaves_main_stack() const;
  HeadValues values(const HeadId& head) const;
  /// "step 10 · layer 3 · cond · head 2"; the kind and the batch item where there are several.
  std::string title(const HeadId& head) const;
  /// The words of the title, layer and head first: "L12 H3 · step 10 · cond". The title itself
  /// where no layer was recorded, and of heads outside the main stack.
  std::string short_title(const HeadId& head) const;
  /// The head among those that are picked from that has this title; of several the first. Nothing
  /// where none has it.
  std::optional<HeadId> titled(std::string_view title) const;

  /// Every value of an axis as text, ascending (branches and kinds in recorded order): of the whole
  /// capture for step, layer, kind, branch, block, slot and chunk, of the head's call for batch and
  /// head. Calls outside the main stack have no layer; what was not recorded is no choice.
  std::vector<std::string> choices(const HeadId& from, HeadAxis axis) const;
  /// The head with `value` on `axis`. The other values stay; where no call has them together with
  /// it, the nearest that exist (kinds, slots and branches first, then layers, steps and chunks).
  /// Throws Error(usage) "step 7: not in this capture (it has 0, 5, 10)".
  HeadId select(const HeadId& from, HeadAxis axis, std::string_view value) const;
  /// The head `by` places further along the values of an axis, the last or first one beyond that.
  HeadId move(const HeadId& from, HeadAxis axis, int64_t by) const;
  /// The head whose values differ least from these.
  HeadId nearest_to(const HeadValues& values) const;
  /// The head with exactly these values. Throws Error(usage) naming the first that does not exist.
  HeadId find(const HeadValues& values) const;

 private:
  struct Wish;
  std::string words_of(const HeadId& head, bool brief) const;
  HeadId nearest(const HeadId& from, const Wish& wish) const;
  std::span<const MapSource> chosen() const {
    return std::span(calls_).subspan(static_cast<size_t>(chosen_.begin),
                                     static_cast<size_t>(chosen_.size()));
  }

  std::vector<MapSource> calls_;
  IndexRange chosen_;  ///< of calls_
};

}  // namespace attnscope
