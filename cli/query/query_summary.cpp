#include "cli/query/query_summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "cli/common/text_table.h"
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

std::string track_text(const OrderedJson& track) {
  TextTable table;
  table.add_column("frame", TextTable::Side::right, 5);
  for (const char* const heading : {"best y,x", "weight", "centre y,x", "mass"}) {
    table.add_column(heading, TextTable::Side::right, 10);
  }
  for (const OrderedJson& point : track) {
    const auto centre = [&](const char* name) {
      return point[name].is_null() ? "-" : fmt::format("{:.2f}", point[name].get<double>());
    };
    const bool found = !point["best_y"].is_null();
    table.add_line(
        {std::to_string(point["t"].get<int64_t>()),
         found
             ? fmt::format("{},{}", point["best_y"].get<int64_t>(), point["best_x"].get<int64_t>())
             : "-",
         number_cell(point["best_weight"].get<double>()),
         centre("centre_y") + "," + centre("centre_x"), number_cell(point["mass"].get<double>())});
  }
  return table.text("  ");
}

/// The largest tokens: a line with the weight and the place of each.
std::string top_text(const OrderedJson& top) {
  TextTable table;
  table.add_column("", TextTable::Side::right, 9);
  table.add_column("", TextTable::Side::left);
  for (const OrderedJson& key : top) {
    table.add_line(
        {number_cell(key["weight"].get<double>()), one_line(key["place"].get<std::string>())});
  }
  return table.text("  ");
}

/// The mass of each frame, ten in a line: as many as 100 columns hold.
std::string frames_text(const OrderedJson& masses) {
  constexpr size_t kInLine = 10;
  TextTable table;
  table.add_column("", TextTable::Side::left);
  for (size_t i = 0; i < std::min(kInLine, masses.size()); ++i) table.add_column("");
  for (size_t first = 0; first < masses.size(); first += kInLine) {
    const size_t end = std::min(first + kInLine, masses.size());
    std::vector<std::string> cells{fmt::format("frames {}-{}", first, end - 1)};
    for (size_t i = first; i < end; ++i) cells.push_back(number_cell(masses[i].get<double>()));
    cells.resize(1 + std::min(kInLine, masses.size()));
    table.add_line(std::move(cells));
  }
  return table.text("  ");
}

/// The mass of what is shown: of the video, or of another segment.
std::optional<double> shown_mass(const OrderedJson& head, const std::string& shown) {
  const OrderedJson& video = head["video_mass"];
  return (video.is_null() ? head["segment_mass"][shown] : video).get<double>();
}

/// The frame with the largest mass; nothing without frames.
std::optional<size_t> largest_frame(const OrderedJson& head) {
  const std::vector<double> masses = head["frame_mass"].get<std::vector<double>>();
  if (masses.empty()) return std::nullopt;
  return static_cast<size_t>(std::max_element(masses.begin(), masses.end()) - masses.begin());
}

/// A number of a head that heads are sorted by, by its name.
std::optional<double> number_of_head(const OrderedJson& head, const std::string& name,
                                     const std::string& shown) {
  if (name == "weight") {
    return head["top"].empty() ? std::nullopt
                               : std::optional(head["top"][0]["weight"].get<double>());
  }
  if (name == "frame_mass") {
    const auto frame = largest_frame(head);
    return frame ? std::optional(head["frame_mass"][*frame].get<double>()) : std::nullopt;
  }
  if (name == shown + "_mass") return shown_mass(head, shown);
  const bool has = head.contains(name) && !head[name].is_null();
  return has ? std::optional(head[name].get<double>()) : std::nullopt;
}

/// The share of a row that no key has.
double sink_share_of(std::span<const float> row) {
  constexpr double kRounding = 1e-6;  // of a sum of weights in float32
  const double rest = 1 - mass_on(row, {0, std::ssize(row)});
  return rest < kRounding ? 0 : rest;
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
  // A row without a sink whose keys are all masked has neither.
  if (volumes.sinks && !std::isinf(lse)) json["sink_share"] = sink_share_of(row);
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

std::vector<std::string> query_numbers(const std::string& shown) {
  std::vector<std::string> names{"weight", "text_mass", "frame_mass", "lse", "sink_share"};
  const std::string own = shown + "_mass";
  if (std::find(names.begin(), names.end(), own) == names.end()) {
    names.insert(names.begin() + 2, own);
  }
  return names;
}

void sort_summaries(const NumberOrder& order, const std::string& shown,
                    std::vector<QuerySummary>& heads) {
  order.sort(heads, [&](const QuerySummary& head) {
    return number_of_head(head.json, order.name, shown);
  });
}

std::string places_text(const OrderedJson& summary) {
  return frames_text(summary["frame_mass"]) + top_text(summary["top"]);
}

void print_summary(const QuerySummary& head, bool reverse, const std::string& shown) {
  const OrderedJson& json = head.json;
  fmt::print(
      "{}\n  {}text {}  {} {}{}\n", head_line(json), reverse ? "sums: " : "",
      number_cell(json["text_mass"].get<double>()), one_line(shown),
      number_cell(shown_mass(json, shown)),
      json.contains("sink_share") ? "  sink " + number_cell(json["sink_share"].get<double>()) : "");
  fmt::print("{}", places_text(json));
  if (json.contains("track")) fmt::print("{}", track_text(json["track"]));
}

void print_summary_table(std::span<const QuerySummary> heads, const QueryTableForm& form) {
  std::vector<HeadName> names;
  for (const QuerySummary& head : heads) names.push_back(head.name);
  const HeadCells columns(names);
  TextTable table;
  columns.add_to(table);
  const bool averaged = heads.front().json.contains("averaged");
  if (averaged) table.add_column("heads");
  std::vector<std::string> numbers;
  const auto any_has = [&](const std::string& name) {
    return std::any_of(heads.begin(), heads.end(), [&](const QuerySummary& head) {
      return number_of_head(head.json, name, form.shown).has_value();
    });
  };
  for (const std::string& name : query_numbers(form.shown)) {
    if (name != "weight" && (any_has(name) || name == form.sort)) numbers.push_back(name);
  }
  for (const std::string& name : numbers) {
    if (name == "frame_mass") table.add_column("frame");
    table.add_column(one_line(name), TextTable::Side::right, 9);
  }
  const bool best = any_has("weight");
  if (best) {
    table.add_column("weight", TextTable::Side::right, 9);
    table.add_column(form.reverse ? "query" : "key", TextTable::Side::left);
  }
  for (const QuerySummary& head : heads) {
    std::vector<std::string> cells = columns.cells(head.name);
    if (averaged) cells.push_back(std::to_string(head.json["averaged"].get<int64_t>()));
    for (const std::string& name : numbers) {
      const auto frame = largest_frame(head.json);
      if (name == "frame_mass") cells.push_back(frame ? std::to_string(*frame) : "-");
      cells.push_back(number_cell(number_of_head(head.json, name, form.shown)));
    }
    if (best) {
      const OrderedJson& top = head.json["top"][0];
      cells.push_back(number_cell(top["weight"].get<double>()));
      cells.push_back(one_line(top["place"].get<std::string>()));
    }
    std::string below = form.lists_top ? top_text(head.json["top"]) : "";
    if (head.json.contains("track")) below += track_text(head.json["track"]);
    table.add_line(std::move(cells), std::move(below));
  }
  fmt::print("{}", table.text());
}

}  // namespace attnscope
