#include "viewer/view/heads/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>

namespace attnscope {
namespace {

/// How far a head is from the present one; the least is where a click goes.
using HeadDistance = std::tuple<bool, bool, int64_t, bool, int64_t, int64_t>;

/// The head of the call with this number; the last before it, or the first.
int64_t head_place(const MapSource& call, int64_t number) {
  const auto past = std::upper_bound(call.heads.begin(), call.heads.end(), number);
  return std::max<int64_t>(0, past - call.heads.begin() - 1);
}

TimelinePoint point_of(const MapSource& call) { return {call.place.chunk, call.step}; }

size_t row_of(Timeline& timeline, const std::string& branch, size_t points) {
  const auto at = std::find_if(timeline.rows.begin(), timeline.rows.end(),
                               [&](const TimelineRow& row) { return row.branch == branch; });
  if (at != timeline.rows.end()) return static_cast<size_t>(at - timeline.rows.begin());
  timeline.rows.push_back({branch, std::vector<TimelineTick>(points)});
  return timeline.rows.size() - 1;
}

const std::string kNotRecordedText = "not recorded";

std::string point_name(const TimelinePoint& point) {
  if (point.chunk == kNoChunk) return std::to_string(point.step);
  return fmt::format("chunk {} \u00b7 {}", point.chunk, point.step);
}

}  // namespace

Timeline Timeline::of(std::span<const MapSource> calls, const HeadId& from) {
  const MapSource& own = calls[static_cast<size_t>(from.call)];
  const int64_t number = own.heads[static_cast<size_t>(from.head)];
  const int64_t item_number = own.batch[static_cast<size_t>(from.batch)];
  Timeline timeline;
  for (const MapSource& call : calls) timeline.points.push_back(point_of(call));
  timeline.has_steps = std::any_of(calls.begin(), calls.end(), [](const MapSource& call) {
    return !call.place.unrecorded.step;
  });
  std::sort(timeline.points.begin(), timeline.points.end());
  timeline.points.erase(std::unique(timeline.points.begin(), timeline.points.end()),
                        timeline.points.end());
  const auto place_of = [&](const MapSource& call) {
    const auto at =
        std::lower_bound(timeline.points.begin(), timeline.points.end(), point_of(call));
    return static_cast<size_t>(at - timeline.points.begin());
  };
  std::map<std::pair<size_t, size_t>, HeadDistance> nearest;
  for (size_t c = 0; c < calls.size(); ++c) {
    const MapSource& call = calls[c];
    const size_t column = place_of(call);
    for (int64_t item = 0; item < static_cast<int64_t>(call.batch.size()); ++item) {
      const size_t line = row_of(timeline, call.branch(item), timeline.points.size());
      const int64_t head = head_place(call, number);
      const int64_t got = call.heads[static_cast<size_t>(head)];
      const HeadDistance distance{call.kind != own.kind,
                                  call.place.slot != own.place.slot,
                                  std::abs(call.layer - own.layer),
                                  call.place.block != own.place.block,
                                  std::abs(call.batch[static_cast<size_t>(item)] - item_number),
                                  std::abs(got - number)};
      const auto [best, is_first] = nearest.try_emplace({line, column}, distance);
      if (!is_first && best->second <= distance) continue;
      best->second = distance;
      const bool same = call.kind == own.kind && call.place.slot == own.place.slot &&
                        call.layer == own.layer && call.place.block == own.place.block &&
                        got == number;
      timeline.rows[line].ticks[column] = {HeadId{static_cast<int64_t>(c), item, head}, same};
    }
  }
  timeline.point = place_of(own);
  timeline.row = row_of(timeline, own.branch(from.batch), timeline.points.size());
  timeline.rows[timeline.row].ticks[timeline.point] = {from, true};
  return timeline;
}

bool Timeline::has_chunks() const {
  return std::any_of(points.begin(), points.end(),
                     [](const TimelinePoint& each) { return each.chunk != kNoChunk; });
}

std::string Timeline::text(size_t at) const {
  const TimelinePoint& each = points[at];
  const std::string step = has_steps ? fmt::format("step {}", each.step) : "step not recorded";
  return each.chunk == kNoChunk ? step : fmt::format("chunk {} \u00b7 {}", each.chunk, step);
}

HeadId Timeline::newest() const {
  const std::vector<TimelineTick>& ticks = rows[row].ticks;
  return *std::find_if(ticks.rbegin(), ticks.rend(), [](const TimelineTick& tick) {
            return tick.same;
          })->head;
}

HeadCurve HeadCurve::of(std::span<const MapSource> calls, const Timeline& timeline,
                        const HeadId& from, const TimelineLook& look, const FindSketch& find) {
  HeadCurve curve;
  if (look.over == CurveAxis::steps) {
    curve.here = timeline.point;
    for (size_t i = 0; i < timeline.points.size(); ++i) {
      const TimelineTick& tick = timeline.rows[timeline.row].ticks[i];
      const std::string name =
          timeline.has_steps ? point_name(timeline.points[i]) : kNotRecordedText;
      curve.points.push_back(
          {name, tick.same ? tick.head : std::nullopt, false, false, std::nan("")});
    }
  } else {
    const int64_t number =
        calls[static_cast<size_t>(from.call)].heads[static_cast<size_t>(from.head)];
    for (const AtlasLine& line : atlas_lines(calls, from)) {
      const auto head =
          std::find_if(line.heads.begin(), line.heads.end(),
                       [&](const AtlasHead& each) { return each.name.head == number; });
      if (line.heads.front().id.call == from.call) curve.here = curve.points.size();
      curve.points.push_back({line.label.empty() ? kNotRecordedText : line.label,
                              head == line.heads.end() ? std::nullopt : std::optional(head->id),
                              false, false, std::nan("")});
    }
  }
  const HeadField& field = *find_head_field(look.metric);
  for (Point& point : curve.points) {
    if (!point.head) continue;
    ++curve.heads;
    if (is_signed(calls[static_cast<size_t>(point.head->call)].score)) {  // it has no such number
      point.known = point.exact = true;
      ++curve.known;
      ++curve.exact;
      continue;
    }
    const auto sketch = find(*point.head);
    if (sketch == nullptr) continue;
    point.known = true;
    point.exact = sketch->exact;
    point.number = sketch->number(field);
    ++curve.known;
    curve.exact += point.exact ? 1 : 0;
    if (std::isnan(point.number)) continue;
    if (!curve.range) curve.range = {point.number, point.number};
    curve.range->first = std::min(curve.range->first, point.number);
    curve.range->second = std::max(curve.range->second, point.number);
  }
  return curve;
}

std::vector<HeadId> HeadCurve::wanted() const {
  std::vector<std::pair<size_t, HeadId>> order;
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i].head) order.emplace_back(i > here ? i - here : here - i, *points[i].head);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (order.size() > kMostCurveHeads) order.resize(kMostCurveHeads);
  std::vector<HeadId> nearest;
  for (const auto& [distance, head] : order) nearest.push_back(head);
  return nearest;
}

void TimelinePlayer::start(double now, double speed) {
  playing_ = true;
  due_ = now + 1 / speed;
}

std::optional<HeadId> TimelinePlayer::next(const Timeline& timeline, const TimelineLook& look,
                                           bool there, double now) {
  if (!playing_ || !there || now < due_) return std::nullopt;
  const std::vector<TimelineTick>& ticks = timeline.rows[timeline.row].ticks;
  const auto is_same = [](const TimelineTick& tick) { return tick.same; };
  const auto here = ticks.begin() + static_cast<std::ptrdiff_t>(timeline.point);
  auto to = std::find_if(here + 1, ticks.end(), is_same);
  if (to == ticks.end() && look.loop) to = std::find_if(ticks.begin(), here, is_same);
  if (to == ticks.end() || to == here) {
    playing_ = false;
    return std::nullopt;
  }
  due_ = now + 1 / look.speed;
  return to->head;
}

}  // namespace attnscope
