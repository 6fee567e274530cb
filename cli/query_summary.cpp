#include "cli/query_summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/error.h"

namespace attnscope {

using Json = nlohmann::ordered_json;

namespace {

std::string key_name(const TokenGrid& grid, int64_t index, const std::vector<std::string>& tokens) {
  if (const auto at = grid.coord(index)) return fmt::format("({},{},{})", at->t, at->y, at->x);
  const IndexRange text = grid.text_range();
  const auto n = static_cast<size_t>(index - text.begin);
  if (text.contains(index)) {
    return n < tokens.size() ? fmt::format("text {} {}", n, tokens[n]) : fmt::format("text {}", n);
  }
  return std::to_string(index);
}

}  // namespace

Json summarise_row(const QueryVolume& volume, const HeadTask& task, std::span<const float> row,
                   double lse, const std::vector<std::string>& tokens, int64_t top_count) {
  const TokenGrid& grid = task.problem->key_tokens();
  const auto mass = [&](IndexRange range) {
    return std::accumulate(row.begin() + range.begin, row.begin() + range.end, 0.0);
  };
  Json json;
  json["step"] = volume.step;
  json["layer"] = volume.layer;
  json["branch"] = volume.branch;
  json["kind"] = volume.kind;
  json["batch"] = volume.batch;
  json["head"] = volume.head;
  json["lse"] = std::isfinite(lse) ? Json(lse) : Json();
  json["text_mass"] = mass(grid.text_range());
  json["video_mass"] = mass(grid.video_range());
  Json frames = Json::array();
  const int64_t frame = grid.height() * grid.width();
  for (int64_t t = 0; t < grid.frames(); ++t) {
    const int64_t begin = grid.video_range().begin + t * frame;
    frames.push_back(mass({begin, begin + frame}));
  }
  json["frame_mass"] = frames;
  std::vector<int64_t> order(row.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto count = std::min<size_t>(static_cast<size_t>(top_count), order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(count), order.end(),
                    [&](int64_t a, int64_t b) {
                      const float x = row[static_cast<size_t>(a)];
                      const float y = row[static_cast<size_t>(b)];
                      return x != y ? x > y : a < b;
                    });
  Json top = Json::array();
  for (size_t i = 0; i < count; ++i) {
    top.push_back({{"key", order[i]},
                   {"place", key_name(grid, order[i], tokens)},
                   {"weight", row[static_cast<size_t>(order[i])]}});
  }
  json["top"] = top;
  return json;
}

void print_row_summaries(const Json& heads) {
  for (const Json& head : heads) {
    fmt::print("step {} layer {} {} {} batch {} head {}\n", head["step"].get<int64_t>(),
               head["layer"].get<int64_t>(), one_line(head["branch"].get<std::string>()),
               head["kind"].get<std::string>(), head["batch"].get<int64_t>(),
               head["head"].get<int64_t>());
    fmt::print("  text {:.4f}  video {:.4f}", head["text_mass"].get<double>(),
               head["video_mass"].get<double>());
    if (!head["frame_mass"].empty()) fmt::print("  frames");
    for (const Json& mass : head["frame_mass"]) fmt::print(" {:.4f}", mass.get<double>());
    fmt::print("\n");
    for (const Json& key : head["top"]) {
      fmt::print("  {:.6f}  {}\n", key["weight"].get<double>(),
                 one_line(key["place"].get<std::string>()));
    }
  }
}

}  // namespace attnscope
