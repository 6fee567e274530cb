#include "cli/query/query_summary.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/products/frame_track.h"
#include "core/products/line_summary.h"
#include "io/files/json_types.h"
#include "io/segments/head_name_json.h"

namespace attnscope {

namespace {

std::string token_name(const TokenGrid& grid, int64_t index,
                       const std::vector<std::string>& tokens) {
  if (const auto at = grid.coord(index)) return fmt::format("({},{},{})", at->t, at->y, at->x);
  const IndexRange text = grid.text_range();
  if (grid.has_map() && !text.contains(index)) return grid.place_text(index);
  const auto n = static_cast<size_t>(index - text.begin);
  if (text.contains(index)) {
    return n < tokens.size() ? fmt::format("text {} {}", n, tokens[n]) : fmt::format("text {}", n);
  }
  return std::to_string(index);
}

/// Null where it was averaged over, or nobody recorded it.
OrderedJson coordinate(int64_t value, bool unrecorded = false) {
  return value < 0 || unrecorded ? OrderedJson() : OrderedJson(value);
}

/// "step 10 layer 3 cond joint batch 0 head 2", without what was averaged over or not recorded.
std::string head_line(const OrderedJson& head) {
  const auto numbered = [&](const char* name) {
    return head[name].is_null() ? "" : fmt::format("{} {} ", name, head[name].get<int64_t>());
  };
  const auto named = [&](const char* name) {
    const bool there = head.contains(name) && head[name].is_string();
    const std::string text = there ? head[name].get<std::string>() : "";
    return text.empty() ? "" : one_line(text) + " ";
  };
  std::string line = numbered("step") + numbered("layer") + named("block") + named("slot") +
                     (head.contains("chunk") ? numbered("chunk") : "") + named("branch") +
                     named("kind") + numbered("batch") + numbered("head");
  if (head.contains("averaged")) {
    return line + fmt::format("mean of {}", head["averaged"].get<int64_t>());
  }
  line.pop_back();
  return line;
}

OrderedJson track_json(const QueryVolumes& volumes, std::span<const float> video) {
  const auto number = [](const auto& value) { return value ? OrderedJson(*value) : OrderedJson(); };
  OrderedJson track = OrderedJson::array();
  for (const TrackPoint& point : frame_track(video, volumes.grid)) {
    track.push_back({{"t", point.t},
                     {"best_y", number(point.best_y)},
                     {"best_x", number(point.best_x)},
                     {"best_weight", point.best_weight},
                     {"centre_y", number(point.centre_y)},
                     {"centre_x", number(point.centre_x)},
                     {"mass", point.mass}});
  }
  return track;
}

void print_track(const OrderedJson& track) {
  fmt::print("  {:>5}  {:>11}  {:>10}  {:>15}  {:>8}\n", "frame", "best y,x", "weight",
             "centre y,x", "mass");
  for (const OrderedJson& point : track) {
    const auto centre = [&](const char* name) {
      return point[name].is_null() ? "-" : fmt::format("{:.2f}", point[name].get<double>());
    };
    fmt::print("  {:>5}  {:>11}  {:>10.6f}  {:>15}  {:>8.4f}\n", point["t"].get<int64_t>(),
               point["best_y"].is_null() ? "-"
                                         : fmt::format("{},{}", point["best_y"].get<int64_t>(),
                                                       point["best_x"].get<int64_t>()),
               point["best_weight"].get<double>(), centre("centre_y") + "," + centre("centre_x"),
               point["mass"].get<double>());
  }
}

}  // namespace

OrderedJson summarise_values(const QueryVolumes& volumes, const QueryVolume& volume,
                             const TokenGrid& grid, std::span<const float> row, double lse,
                             int64_t top_count) {
  OrderedJson json;
  const Unrecorded& unrecorded = volume.place.unrecorded;
  json["step"] = coordinate(volume.step, unrecorded.step);
  json["layer"] = coordinate(volume.layer, unrecorded.layer);
  add_place(json, volume.place);
  json["branch"] = unrecorded.branch ? OrderedJson() : OrderedJson(volume.branch);
  json["kind"] = volume.kind;
  json["batch"] = volume.batch;
  json["head"] = coordinate(volume.head);
  if (volume.averaged > 1 || volumes.mean != "none") json["averaged"] = volume.averaged;
  json["lse"] = std::isfinite(lse) ? OrderedJson(lse) : OrderedJson();
  json["text_mass"] = mass_on(row, grid.text_range());
  // Where another segment is shown, the video's share is among segment_mass.
  const bool of_video = volumes.shown == "video";
  json["video_mass"] = of_video ? OrderedJson(mass_on(row, grid.video_range())) : OrderedJson();
  if (grid.has_map()) {
    OrderedJson& segments = json["segment_mass"] = OrderedJson::object();
    for (const TokenSegment& segment : grid.segments()) {
      segments[segment.name] = mass_on(row, segment.tokens);
    }
  }
  OrderedJson frames = OrderedJson::array();
  for (const double mass : frame_masses(row, grid)) frames.push_back(mass);
  json["frame_mass"] = frames;
  OrderedJson top = OrderedJson::array();
  const auto tokens = static_cast<int64_t>(row.size());
  for (const int64_t token : largest_tokens(row, {0, tokens}, top_count)) {
    top.push_back({{volumes.reverse ? "query" : "key", token},
                   {"place", token_name(grid, token, volumes.tokens_of(volume))},
                   {"weight", row[static_cast<size_t>(token)]}});
  }
  json["top"] = top;
  if (volumes.tracked) {
    const IndexRange video = grid.video_range();
    json["track"] = track_json(
        volumes, row.subspan(static_cast<size_t>(video.begin), static_cast<size_t>(video.size())));
  }
  return json;
}

void print_row_summaries(const OrderedJson& heads, bool reverse, const std::string& shown) {
  for (const OrderedJson& head : heads) {
    fmt::print("{}\n", head_line(head));
    const bool of_video = !head["video_mass"].is_null();
    const OrderedJson& shown_mass = of_video ? head["video_mass"] : head["segment_mass"][shown];
    fmt::print("  {}text {:.4f}  {} {:.4f}", reverse ? "sums: " : "",
               head["text_mass"].get<double>(), one_line(shown), shown_mass.get<double>());
    if (!head["frame_mass"].empty()) fmt::print("  frames");
    for (const OrderedJson& mass : head["frame_mass"]) fmt::print(" {:.4f}", mass.get<double>());
    fmt::print("\n");
    for (const OrderedJson& key : head["top"]) {
      fmt::print("  {:.6f}  {}\n", key["weight"].get<double>(),
                 one_line(key["place"].get<std::string>()));
    }
    if (head.contains("track")) print_track(head["track"]);
  }
}

}  // namespace attnscope
