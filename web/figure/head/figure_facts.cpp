#include "web/figure/head/figure_facts.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/version.h"
#include "io/capture/evictions.h"
#include "io/files/json_types.h"
#include "io/pictures/colormap.h"

namespace attnscope {
namespace {

OrderedJson segment_json(const TokenSegment& segment, int64_t batch) {
  OrderedJson json{{"name", segment.name},
                   {"kind", modality_name(segment.modality)},
                   {"begin", segment.tokens.begin},
                   {"end", segment.tokens.end}};
  if (segment.is_raster()) json["grid"] = segment.grid;
  if (segment.valid.size() == 1) {
    json["valid"] = segment.valid.front();
  } else if (!segment.valid.empty()) {
    json["valid"] = segment.valid[static_cast<size_t>(batch)];
  }
  return json;
}

/// The segments of a sequence, in its order.
OrderedJson segments_json(const TokenGrid& tokens, int64_t batch) {
  OrderedJson list = OrderedJson::array();
  for (const TokenSegment& segment : tokens.segments()) {
    list.push_back(segment_json(segment, batch));
  }
  if (tokens.has_map()) return list;
  const IndexRange text = tokens.text_range(), video = tokens.video_range();
  OrderedJson words{{"name", "text"}, {"kind", "text"}, {"begin", text.begin}, {"end", text.end}};
  const std::vector<int64_t>& valid = tokens.text_valid();
  if (!valid.empty()) words["valid"] = valid[valid.size() == 1 ? 0 : static_cast<size_t>(batch)];
  OrderedJson frames{
      {"name", "video"}, {"kind", "video"}, {"begin", video.begin}, {"end", video.end}};
  if (tokens.has_grid()) frames["grid"] = {tokens.frames(), tokens.height(), tokens.width()};
  if (!text.empty()) list.push_back(words);
  if (!video.empty()) list.push_back(frames);
  if (list.size() == 2 && text.begin > video.begin) std::swap(list[0], list[1]);
  return list;
}

OrderedJson side_json(const CutTokens& cut, const TokenGrid& tokens, const CallEntry& call,
                      int64_t batch) {
  OrderedJson json{{"first", cut.first}, {"stride", cut.stride},
                   {"count", cut.count}, {"total", cut.total},
                   {"end", cut.end},     {"segments", segments_json(tokens, batch)}};
  if (tokens.has_grid()) {
    json["film"] = {{"begin", tokens.video_range().begin},
                    {"grid", {tokens.frames(), tokens.height(), tokens.width()}}};
  }
  const std::span<const std::string> words = call.tokens_of(batch);
  if (!words.empty() && !tokens.text_range().empty()) {
    json["words"] = {{"begin", tokens.text_range().begin}, {"text", words}};
  }
  return json;
}

OrderedJson start_json(const FigureStart& start, const FigureCut& cut) {
  OrderedJson json{{"query", first_query(start, cut)}, {"zoom", nullptr}};
  if (start.zoom) {
    const auto& [rows, keys] = *start.zoom;
    json["zoom"] = {rows.begin, rows.end, keys.begin, keys.end};
  }
  return json;
}

/// Each colour map as 256 colours in hexadecimal digits.
OrderedJson colours_json() {
  OrderedJson maps = OrderedJson::object();
  for (const std::string& name : colormap_names()) {
    std::string text;
    for (int i = 0; i < 256; ++i) {
      const Rgb colour = colormap_at(*parse_colormap(name), i / 255.0);
      text += fmt::format("{:02x}{:02x}{:02x}", colour.r, colour.g, colour.b);
    }
    maps[name] = text;
  }
  return maps;
}

}  // namespace

OrderedJson figure_facts(const FigureSource& source, const FigureCut& cut, const FigureMap& map) {
  const AttentionProblem& problem = *cut.problem;
  OrderedJson facts{
      {"format", "attnscope-figure/1"},
      {"version", version()},
      {"title", source.title},
      {"caption", source.start.caption},
      {"start", start_json(source.start, cut)},
      {"command", source.command},
      {"prompt", source.call.prompt},
      {"backend", source.backend},
      {"score", problem.score_words()},
      {"score_number", static_cast<int>(problem.score().form)},
      {"score_cap", problem.score().cap},
      {"sinks", problem.sinks().describe()},
      {"mask", problem.mask().describe()},
      {"scale", problem.scale(cut.head)},
      {"dtype", dtype_name(problem.q().dtype())},
      {"dtype_number", static_cast<int>(problem.q().dtype())},
      {"dim", problem.head_dim()},
      {"queries", side_json(cut.rows, problem.query_tokens(), source.call, cut.batch)},
      {"keys", side_json(cut.keys, problem.key_tokens(), source.call, cut.batch)},
      {"evicted", !evictions_of(source.call).empty()},
      {"mask_lists", map.mask ? map.mask->starts.size() - 1 : 0},
      {"mask_runs", map.mask ? map.mask->runs.size() : 0},
      {"level", map.pyramid.level},
      {"texels", {map.pyramid.rows, map.pyramid.cols}},
      {"range", {map.pyramid.low, map.pyramid.high}},
      {"mass_ends", map.pyramid.mass},
      {"colours", colours_json()}};
  if (source.call.timestep) facts["timestep"] = *source.call.timestep;
  return facts;
}

}  // namespace attnscope
