#include "io/stream_chunks/joined_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "core/base/error.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

/// A token map with what the call's facts say of each segment.
struct StatedMap {
  const TokenGrid* tokens;
  OrderedJson json;
};

StatedMap stated_map(const CallEntry& call, bool keys) {
  const bool own = keys && call.facts.count("keys") != 0;
  const TokenGrid& tokens = keys ? call.problem->key_tokens() : call.problem->query_tokens();
  return {&tokens, OrderedJson::parse(call.facts.at(own ? "keys" : "queries").json)};
}

/// A segment of the joined map: its JSON, whose `name` may be that of others as well.
struct Part {
  OrderedJson json;
  int64_t position = -1;  ///< of its first token; −1: it has none
  int64_t count = 0;
  bool whole = true;  ///< nothing can be added: it has padding, or an order of its own
};

/// As many words as tokens, [1 or batch][token]; empty where none were recorded.
std::vector<std::vector<std::string>> words_of(const OrderedJson& segment, int64_t count) {
  if (!segment.contains("words")) return {};
  const OrderedJson& words = segment["words"];
  std::vector<std::vector<std::string>> lists;
  if (!words.empty() && words[0].is_array()) {
    lists = words.get<std::vector<std::vector<std::string>>>();
  } else {
    lists.push_back(words.get<std::vector<std::string>>());
  }
  for (auto& list : lists) list.resize(static_cast<size_t>(count));
  return lists;
}

void set_words(OrderedJson& segment, const std::vector<std::vector<std::string>>& lists) {
  segment.erase("words");
  if (lists.size() == 1) segment["words"] = lists.front();
  if (lists.size() > 1) segment["words"] = lists;
}

/// The grid of some tokens of a segment; none where they are no whole frames.
OrderedJson part_grid(const TokenSegment& segment, IndexRange part) {
  const int64_t frame = segment.grid[1] * segment.grid[2];
  if (!segment.is_raster() || part.begin % frame != 0 || part.size() % frame != 0) return {};
  return OrderedJson::array({part.size() / frame, segment.grid[1], segment.grid[2]});
}

/// Tokens `part` (counted from the segment's first) of a segment.
Part part_of(const TokenSegment& segment, const OrderedJson& stated, IndexRange part) {
  Part made;
  made.json = stated;
  made.count = part.size();
  for (const char* fact : {"start", "count", "grid", "order", "first_frame", "position", "words"}) {
    made.json.erase(fact);
  }
  made.json["count"] = part.size();
  made.whole = segment.has_padding() || (segment.has_grid() && !segment.is_raster());
  if (made.whole && part.size() != segment.tokens.size()) {
    throw usage_error("segment " + segment.name + ": only a part of it is joined, and its " +
                      (segment.has_padding() ? "padding" : "order") + " is that of the whole");
  }
  if (stated.contains("valid") && stated["valid"].is_object()) {
    throw usage_error("segment " + segment.name + ": its padding is a tensor, which is not joined");
  }
  if (segment.order == CellOrder::listed) {
    throw usage_error("segment " + segment.name + ": its order is a tensor, which is not joined");
  }
  const int64_t frame = segment.grid[1] * segment.grid[2];
  if (made.whole && segment.has_grid()) {
    made.json["grid"] = stated["grid"];
    made.json["order"] = stated["order"];
  } else if (const OrderedJson grid = part_grid(segment, part); !grid.is_null()) {
    made.json["grid"] = grid;
  }
  if (stated.contains("first_frame") && made.json.contains("grid")) {
    made.json["first_frame"] = segment.first_frame + part.begin / frame;
  }
  if (segment.position) {
    made.position = *segment.position + part.begin;
    made.json["position"] = made.position;
  }
  auto words = words_of(stated, segment.tokens.size());
  for (auto& list : words) list = {list.begin() + part.begin, list.begin() + part.end};
  set_words(made.json, words);
  return made;
}

bool continues(const Part& before, const Part& next) {
  if (before.whole || next.whole || before.position < 0 || next.position < 0) return false;
  if (before.position + before.count != next.position) return false;
  const auto same = [&](const char* fact) {
    return before.json.value(fact, OrderedJson()) == next.json.value(fact, OrderedJson());
  };
  if (!same("name") || !same("modality") || !same("cell")) return false;
  const bool grid = before.json.contains("grid");
  if (grid != next.json.contains("grid")) return false;
  const OrderedJson& a = before.json;
  const OrderedJson& b = next.json;
  return !grid || (a["grid"][1] == b["grid"][1] && a["grid"][2] == b["grid"][2] &&
                   a.contains("first_frame") == b.contains("first_frame"));
}

/// Adds the tokens of `next`, which continue those of `part`.
void extend(Part& part, const Part& next) {
  auto words = words_of(part.json, part.count);
  auto more = words_of(next.json, next.count);
  if (!words.empty() || !more.empty()) {
    const size_t items = std::max({size_t{1}, words.size(), more.size()});
    const auto spread = [&](auto& lists, int64_t count) {
      if (lists.empty()) lists.emplace_back(static_cast<size_t>(count));
      while (lists.size() < items) lists.push_back(lists.front());
    };
    spread(words, part.count);
    spread(more, next.count);
    for (size_t i = 0; i < items; ++i)
      words[i].insert(words[i].end(), more[i].begin(), more[i].end());
  }
  part.count += next.count;
  part.json["count"] = part.count;
  if (part.json.contains("grid")) {
    part.json["grid"][0] =
        part.json["grid"][0].get<int64_t>() + next.json["grid"][0].get<int64_t>();
  }
  set_words(part.json, words);
}

/// Collects the segments of a joined sequence.
class MapBuilder {
 public:
  explicit MapBuilder(std::span<const CallEntry* const> chunks) {
    for (const CallEntry* call : chunks) {
      queries_.push_back(stated_map(*call, false));
      keys_.push_back(stated_map(*call, true));
    }
  }

  /// Queries of a chunk.
  void add_queries(const ChunkTokens& tokens) { add(queries_[tokens.chunk], tokens.tokens); }
  /// Keys of a chunk, by what the map of its keys says.
  void add_keys(const ChunkTokens& tokens, bool history) {
    add(keys_[tokens.chunk], tokens.tokens, [&](Part& part) {
      if (!history) return;
      part.json["modality"] = "history";
      part.json["name"] = "cached";
    });
  }
  /// Keys of a chunk, by what the map of its queries says where they are some of them.
  void add_own_keys(const ChunkTokens& tokens) {
    const StatedMap& queries = queries_[tokens.chunk];
    add(keys_[tokens.chunk], tokens.tokens, [&](Part& part) {
      for (size_t i = 0; i < queries.tokens->segments().size(); ++i) {
        const TokenSegment& segment = queries.tokens->segments()[i];
        if (!segment.position || part.position < *segment.position ||
            part.position + part.count > *segment.position + segment.tokens.size()) {
          continue;
        }
        const int64_t first = part.position - *segment.position;
        part = part_of(segment, queries.json[i], {first, first + part.count});
        return;
      }
    });
  }
  /// Ends the run of tokens: those that follow do not continue it, whatever their positions are.
  void end_run() { open_ = false; }

  OrderedJson finish() {
    if (parts_.size() > TokenGrid::kMaxSegments) {
      throw usage_error(fmt::format("the joined sequence has {} segments (limit {})", parts_.size(),
                                    TokenGrid::kMaxSegments));
    }
    OrderedJson list = OrderedJson::array();
    std::set<std::string> names;
    for (Part& part : parts_) {
      const auto name = part.json["name"].get<std::string>();
      std::string own = name;
      for (int n = 2; !names.insert(own).second; ++n) own = fmt::format("{}.{}", name, n);
      part.json["name"] = own;
      list.push_back(std::move(part.json));
    }
    return list;
  }

 private:
  void add(
      const StatedMap& map, IndexRange tokens,
      const std::function<void(Part&)>& change = [](Part&) {}) {
    const auto& segments = map.tokens->segments();
    for (size_t i = 0; i < segments.size(); ++i) {
      const IndexRange part = intersect(segments[i].tokens, tokens);
      if (part.empty()) continue;
      const int64_t first = segments[i].tokens.begin;
      Part made = part_of(segments[i], map.json[i], {part.begin - first, part.end - first});
      change(made);
      if (open_ && !parts_.empty() && continues(parts_.back(), made)) {
        extend(parts_.back(), made);
      } else {
        parts_.push_back(std::move(made));
      }
      open_ = true;
    }
  }

  std::vector<StatedMap> queries_, keys_;
  std::vector<Part> parts_;
  bool open_ = false;
};

}  // namespace

OrderedJson joined_query_segments(std::span<const CallEntry* const> chunks,
                                  const std::vector<ChunkTokens>& queries) {
  MapBuilder builder(chunks);
  for (const ChunkTokens& tokens : queries) builder.add_queries(tokens);
  return builder.finish();
}

OrderedJson joined_key_segments(std::span<const CallEntry* const> chunks, const JoinedKeys& keys) {
  MapBuilder builder(chunks);
  for (const ChunkTokens& tokens : keys.first) builder.add_keys(tokens, false);
  builder.end_run();
  for (const ChunkTokens& tokens : keys.cached) builder.add_keys(tokens, true);
  builder.end_run();
  for (const ChunkTokens& tokens : keys.own) builder.add_own_keys(tokens);
  builder.end_run();
  for (const ChunkTokens& tokens : keys.last) builder.add_keys(tokens, false);
  return builder.finish();
}

}  // namespace attnscope
