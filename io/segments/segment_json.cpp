#include "io/segments/segment_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "core/base/checked_math.h"
#include "core/base/choice_list.h"
#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 31;

bool is_count(const Json& value) {
  return value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(kMostTokens);
}

std::optional<std::array<int64_t, 3>> three_of(const Json& value) {
  const bool fits = value.is_array() && value.size() == 3 &&
                    std::all_of(value.begin(), value.end(), [](const Json& number) {
                      return is_count(number) && number.get<int64_t>() >= 1;
                    });
  return fits ? std::optional(value.get<std::array<int64_t, 3>>()) : std::nullopt;
}

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

/// Reads one segment.
class SegmentReader {
 public:
  SegmentReader(const Json& json, size_t number, const SegmentTensors* tensors)
      : json_(json), where_(fmt::format("[{}]", number)), tensors_(tensors) {
    if (!json.is_object()) throw wrong("", "an object");
    const std::set<std::string> known{"name",  "modality",    "count", "start", "grid",    "cell",
                                      "order", "first_frame", "valid", "words", "position"};
    for (const auto& [key, value] : json.items()) {
      if (known.count(key) != 0) continue;
      const std::vector<std::string> names(known.begin(), known.end());
      const std::string nearest = nearest_word(key, names);
      throw usage_error(where_ + "." + key + ": is no fact of a segment" +
                        (nearest.empty() ? "" : ", did you mean " + nearest + "?"));
    }
  }

  TokenSegment read(int64_t begin) {
    TokenSegment segment;
    segment.name = name();
    segment.modality = modality();
    const Json& count = needed("count");
    if (!is_count(count) || count.get<int64_t>() < 1) {
      throw wrong("count", "a whole number from 1 on");
    }
    segment.tokens = {begin, begin + count.get<int64_t>()};
    if (json_.contains("start") && json_["start"] != begin) {
      throw wrong("start", std::to_string(begin) + ", where the segment before it ends");
    }
    if (json_.contains("grid")) segment.grid = grid(segment.tokens.size());
    if (json_.contains("cell")) segment.cell = three("cell");
    if (json_.contains("first_frame")) {
      if (!json_["first_frame"].is_number_integer()) throw wrong("first_frame", "a whole number");
      segment.first_frame = json_["first_frame"].get<int64_t>();
    }
    if (json_.contains("position")) segment.position = position(segment);
    if (json_.contains("order")) read_order(segment);
    if (json_.contains("valid")) read_valid(segment);
    return segment;
  }

  std::vector<std::vector<std::string>> words(int64_t count) const {
    if (!json_.contains("words")) return {};
    const Json& value = json_["words"];
    const auto is_list = [](const Json& list) {
      return list.is_array() && std::all_of(list.begin(), list.end(),
                                            [](const Json& word) { return word.is_string(); });
    };
    std::vector<std::vector<std::string>> lists;
    if (is_list(value)) {
      lists = {value.get<std::vector<std::string>>()};
    } else if (value.is_array() && std::all_of(value.begin(), value.end(), is_list)) {
      lists = value.get<std::vector<std::vector<std::string>>>();
    } else {
      throw wrong("words", "a list of strings, or a list of such lists");
    }
    for (const auto& list : lists) {
      if (static_cast<int64_t>(list.size()) > count) {
        throw usage_error(where_ + ".words: has more strings than tokens (got " +
                          std::to_string(list.size()) + ", limit " + std::to_string(count) + ")");
      }
    }
    return lists;
  }

 private:
  Error wrong(const std::string& fact, const std::string& expected) const {
    const bool there = !fact.empty() && json_.contains(fact);
    return usage_error(where_ + (fact.empty() ? "" : "." + fact) + ": expected " + expected +
                       (fact.empty() ? " (got " + shown(json_) + ")"
                        : there      ? " (got " + shown(json_[fact]) + ")"
                                     : ", but it is missing"));
  }

  const Json& needed(const std::string& fact) const {
    if (!json_.contains(fact))
      throw wrong(fact, fact == "count" ? "the number of tokens" : "a name");
    return json_[fact];
  }

  std::string name() const {
    const Json& value = needed("name");
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    const bool odd = std::any_of(text.begin(), text.end(), [](unsigned char c) {
      return c <= ' ' || c == 0x7f || c == ':' || c == ',' || c == '/';
    });
    const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
    if (text.empty() || text.size() > 64 || odd || digits) {
      throw wrong("name",
                  "1 to 64 characters, not digits alone, no white space, colon, comma or slash");
    }
    return text;
  }

  Modality modality() const {
    const Json& value = needed("modality");
    const auto modality =
        value.is_string() ? parse_modality(value.get<std::string>()) : std::optional<Modality>();
    if (!modality) throw wrong("modality", choice_list(modality_names()));
    return *modality;
  }

  std::array<int64_t, 3> three(const char* fact) const {
    const auto extents = three_of(json_[fact]);
    if (!extents) throw wrong(fact, "three whole numbers from 1 on");
    return *extents;
  }

  std::array<int64_t, 3> grid(int64_t count) const {
    const std::array<int64_t, 3> grid = three("grid");
    if (checked_count(grid) != count) {
      throw wrong("grid", "three extents that multiply to the segment's " + std::to_string(count) +
                              " tokens");
    }
    return grid;
  }

  int64_t position(const TokenSegment& segment) const {
    constexpr uint64_t kMost = uint64_t{1} << 62;
    const Json& value = json_["position"];
    if (!value.is_number_unsigned() || value.get<uint64_t>() > kMost) {
      throw wrong("position", "the number of its first token in the stream, from 0 on");
    }
    const auto position = value.get<int64_t>();
    if (!segment.has_grid() || !json_.contains("first_frame")) return position;
    const auto expected = checked_count(
        std::array{std::max<int64_t>(0, segment.first_frame), segment.grid[1], segment.grid[2]});
    if (expected != position) {
      throw wrong("position", "first_frame x rows x columns, as both are stated");
    }
    return position;
  }

  void read_order(TokenSegment& segment) const {
    const Json& value = json_["order"];
    if (value == "raster") return;
    if (!segment.has_grid()) throw wrong("order", "a grid beside it");
    if (value.is_object() && value.size() == 1 && value.contains("tiles")) {
      const auto tile = three_of(value["tiles"]);
      if (!tile) throw wrong("order", "tiles of three whole numbers from 1 on");
      segment.tile = *tile;
      segment.order = CellOrder::tiles;
      return;
    }
    segment.order = CellOrder::listed;
    if (tensors_ == nullptr && value == "listed") return;
    const bool named = value.is_object() && value.size() == 1 && value.contains("permutation") &&
                       value["permutation"].is_string();
    if (!named || tensors_ == nullptr) {
      throw wrong("order", R"("raster", {"tiles": [t, h, w]} or {"permutation": "TENSOR"})");
    }
    segment.cells = permutation(value["permutation"].get<std::string>(), segment.tokens.size());
  }

  std::shared_ptr<const std::vector<int32_t>> permutation(const std::string& name,
                                                          int64_t count) const {
    std::vector<int32_t> cells;
    std::vector<bool> seen(static_cast<size_t>(count));
    for (const int64_t cell : tensors_->list(name, count)) {
      if (cell < 0 || cell >= count || seen[static_cast<size_t>(cell)]) {
        throw usage_error(where_ + ".order: tensor " + name +
                          " is no permutation: " + std::to_string(cell) + " is " +
                          (cell < 0 || cell >= count ? "no cell" : "there twice"));
      }
      seen[static_cast<size_t>(cell)] = true;
      cells.push_back(static_cast<int32_t>(cell));
    }
    return std::make_shared<const std::vector<int32_t>>(std::move(cells));
  }

  void read_valid(TokenSegment& segment) const {
    const Json& value = json_["valid"];
    if (segment.has_grid()) {
      throw usage_error(where_ +
                        ".valid: a segment with a grid has no padding; a segment of its "
                        "own, of modality padding, says which tokens are");
    }
    const int64_t count = segment.tokens.size();
    if (value.is_object() && value.size() == 1 && value.contains("tensor") &&
        value["tensor"].is_string() && tensors_ != nullptr) {
      segment.valid_tokens = std::make_shared<const std::vector<std::vector<uint8_t>>>(
          tensors_->flags(value["tensor"].get<std::string>(), count));
      return;
    }
    const Json list = value.is_array() ? value : Json::array({value});
    const bool counts = !list.empty() && std::all_of(list.begin(), list.end(), [&](const Json& n) {
      return is_count(n) && n.get<int64_t>() <= count;
    });
    if (!counts) {
      throw wrong("valid",
                  "0 to " + std::to_string(count) +
                      " tokens, one number or one a batch item, or {\"tensor\": \"NAME\"}");
    }
    segment.valid = list.get<std::vector<int64_t>>();
  }

  const Json& json_;
  const std::string where_;
  const SegmentTensors* tensors_;
};

}  // namespace

StatedSegments parse_segments(const Json& list, const SegmentTensors* tensors) {
  if (!list.is_array() || list.empty()) {
    throw usage_error("expected a list of segments (got " + shown(list) + ")");
  }
  StatedSegments stated;
  std::set<std::string> names;
  int64_t begin = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    SegmentReader reader(list[i], i, tensors);
    TokenSegment segment = reader.read(begin);
    begin = segment.tokens.end;
    if (begin > kMostTokens) {
      throw usage_error("[" + std::to_string(i) + "].count: the sequence is too long");
    }
    if (!names.insert(segment.name).second) {
      throw usage_error("[" + std::to_string(i) + "].name: " + segment.name + " is there twice");
    }
    stated.words.push_back(reader.words(segment.tokens.size()));
    stated.segments.push_back(std::move(segment));
  }
  return stated;
}

OrderedJson segments_json(const TokenGrid& tokens) {
  auto list = OrderedJson::array();
  for (const TokenSegment& segment : tokens.segments()) {
    OrderedJson json{{"name", segment.name},
                     {"modality", modality_name(segment.modality)},
                     {"start", segment.tokens.begin},
                     {"count", segment.tokens.size()}};
    if (segment.has_grid()) json["grid"] = segment.grid;
    if (segment.cell[0] > 0) json["cell"] = segment.cell;
    if (segment.first_frame != 0) json["first_frame"] = segment.first_frame;
    if (segment.position) json["position"] = *segment.position;
    if (segment.order == CellOrder::tiles) json["order"] = {{"tiles", segment.tile}};
    if (segment.order == CellOrder::listed) json["order"] = "listed";
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace attnscope
