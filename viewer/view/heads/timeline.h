#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "viewer/view/heads/head_atlas.h"
#include "viewer/view/looks/timeline_look.h"
#include "viewer/view/maps/map_source.h"
#include "viewer/view/maps/map_tile.h"

namespace attnscope {

/// A moment of the recording: a denoising step, of a stream one of a chunk.
struct TimelinePoint {
  int64_t chunk = 0;  ///< kNoChunk: the capture is no stream
  int64_t step = 0;
  friend auto operator<=>(const TimelinePoint&, const TimelinePoint&) = default;
};

/// The head that a branch recorded at a point.
struct TimelineTick {
  std::optional<HeadId> head;  ///< the call nearest to the present one; nothing: it has none there
  bool same =
      false;  ///< of the present layer, block, slot and kind, with the present head's number
  friend bool operator==(const TimelineTick&, const TimelineTick&) = default;
};
struct TimelineRow {
  std::string branch;
  std::vector<TimelineTick> ticks;  ///< one a point
  friend bool operator==(const TimelineRow&, const TimelineRow&) = default;
};

/// When what was recorded, and where the present head stands in it. A value.
struct Timeline {
  std::vector<TimelinePoint> points;  ///< chunk by chunk, ascending
  std::vector<TimelineRow> rows;      ///< branches, as recorded
  size_t row = 0, point = 0;          ///< of the present head
  bool has_steps = true;              ///< else no call's step was recorded

  static Timeline of(std::span<const MapSource> calls, const HeadId& from);
  bool has_chunks() const;
  /// "chunk 2 · step 10"; "step not recorded".
  std::string text(size_t at) const;
  const TimelineTick& here() const { return rows[row].ticks[point]; }
  /// The present head at the last point of its branch that has it; may be the present one.
  HeadId newest() const;
};

/// Heads whose numbers one curve asks for at most; those nearest to the present one.
inline constexpr size_t kMostCurveHeads = 512;

/// A number of the present head over the steps of its branch, or over the layers of its step.
struct HeadCurve {
  struct Point {
    std::string name;            ///< "10", "chunk 2 · 10", or a layer
    std::optional<HeadId> head;  ///< nothing: not recorded
    bool known = false, exact = false;
    double number = 0;  ///< NaN: not known, or not defined of this head
  };
  std::vector<Point> points;
  size_t here = 0;
  int64_t heads = 0, known = 0, exact = 0;
  std::optional<std::pair<double, double>> range;  ///< of the numbers; nothing: there is none

  /// The look has a metric.
  static HeadCurve of(std::span<const MapSource> calls, const Timeline& timeline,
                      const HeadId& from, const TimelineLook& look, const FindSketch& find);
  /// Whose sketches it takes, those nearest to the present one first.
  std::vector<HeadId> wanted() const;
};

/// Plays through the points that have a call as the present one. Has no clock: times in seconds.
class TimelinePlayer {
 public:
  bool playing() const { return playing_; }
  void start(double now, double speed);
  void stop() { playing_ = false; }
  /// How long until the next step is due; 0: it is.
  double wait(double now) const { return due_ > now ? due_ - now : 0; }
  /// The head to show now. `there`: what is shown now is to be seen, however coarse; no step is
  /// left before. Nothing while none is due; where there is nothing more to go to, playing ends.
  std::optional<HeadId> next(const Timeline& timeline, const TimelineLook& look, bool there,
                             double now);

 private:
  bool playing_ = false;
  double due_ = 0;
};

}  // namespace attnscope
