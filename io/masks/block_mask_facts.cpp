#include "io/masks/block_mask_facts.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/version.h"
#include "io/files/checksum.h"
#include "io/files/file_text.h"
#include "io/files/json_text.h"
#include "io/files/json_types.h"
#include "io/files/strict_json.h"
#include "io/segments/head_name_json.h"
#include "io/segments/segment_json.h"

namespace attnscope {
namespace {

constexpr const char* kBlocksFormat = "attnscope-blocks/1";

std::string checksum_text(uint64_t checksum) { return fmt::format("{:016x}", checksum); }

OrderedJson order_json(const StatedOrder& order) {
  OrderedJson json = OrderedJson::object();
  if (!order.grid.empty()) json["grid"] = order.grid;
  if (!order.text.empty()) json["text"] = order.text;
  if (!order.segments.empty()) json["segments"] = OrderedJson::parse(order.segments);
  return json;
}

OrderedJson saved_head_json(const SavedHead& head) {
  const auto number = [](const std::optional<double>& value) {
    return value ? OrderedJson(*value) : OrderedJson();
  };
  OrderedJson json = name_json(head.name);
  json["density"] = number(head.density);
  json["recall"] = number(head.recall);
  return json;
}

/// The JSON of a file of facts. Throws Error(file) where it is something else.
Json read_facts_file(const std::string& file) {
  constexpr int64_t kMostFactBytes = 16 << 20;
  const std::string text = read_file_text(file, "the facts of blocks", kMostFactBytes);
  Json json = parse_strict_json(text, file, "");
  if (json.is_object() && json.value("format", Json()) == kBlocksFormat) return json;
  throw file_error(file, "format",
                   fmt::format("expected {}, as --save writes it beside blocks", kBlocksFormat));
}

/// Reads the fields of X.npy.json; what is missing or of another type is Error(file).
class BlockFactsReader {
 public:
  explicit BlockFactsReader(const std::filesystem::path& blocks)
      : blocks_(blocks), file_(block_facts_path(blocks).string()) {}

  BlockMaskFacts read() const {
    const Json json = read_facts_file(file_);
    const auto found = checksum_text(file_checksum(blocks_, std::stop_token()));
    if (const auto told = field<std::string>(json, "checksum"); told != found) {
      throw file_error(file_, "checksum",
                       fmt::format("is of other blocks than {} holds (expected {}, got {}): move "
                                   "it away, or save the mask again",
                                   blocks_.filename().string(), told, found));
    }
    BlockMaskFacts facts;
    facts.capture = field<std::string>(json, "capture");
    facts.capture_hash = field<std::string>(json, "capture_hash");
    facts.mask = field<std::string>(json, "mask");
    facts.block = field<int64_t>(json, "block");
    facts.order = field<std::string>(json, "order");
    facts.queries = order_of(field<Json>(json, "queries"));
    facts.keys = order_of(field<Json>(json, "keys"));
    for (const auto& head : field<std::vector<Json>>(json, "heads")) {
      facts.heads.push_back({name_of(head), number_of(head, "density"), number_of(head, "recall")});
    }
    if (facts.block < 1 || facts.heads.empty()) {
      throw file_error(file_, facts.block < 1 ? "block" : "heads", "expected at least 1");
    }
    return facts;
  }

 private:
  template <typename Value>
  Value field(const Json& json, const char* name) const {
    try {
      return json.at(name).get<Value>();
    } catch (const Json::exception&) {
      throw file_error(file_, name, "is missing or of another type");
    }
  }

  template <typename Value>
  Value field_or(const Json& json, const char* name, Value otherwise) const {
    const bool there = json.is_object() && json.contains(name) && !json[name].is_null();
    return there ? field<Value>(json, name) : std::move(otherwise);
  }

  StatedOrder order_of(const Json& json) const {
    const auto segments = field_or(json, "segments", Json());
    return {field_or(json, "grid", std::string()), field_or(json, "text", std::string()),
            segments.is_null() ? "" : segments.dump()};
  }

  HeadName name_of(const Json& json) const {
    try {
      return parse_name_json(json);
    } catch (const Json::exception&) {
      throw file_error(file_, "heads", "has one whose name is missing or of another type");
    }
  }

  std::optional<double> number_of(const Json& json, const char* name) const {
    const auto value = field_or(json, name, Json());
    return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
  }

  const std::filesystem::path& blocks_;
  const std::string file_;
};

}  // namespace

StatedOrder StatedOrder::of(const TokenGrid& tokens) {
  StatedOrder order;
  // Sorted by name, as a reader has them.
  if (tokens.has_map()) order.segments = Json(segments_json(tokens)).dump();
  const bool whole = tokens.grid_text() != "none";
  if (whole) order.grid = tokens.grid_text();
  const bool known = whole || (!tokens.has_map() && tokens.text_place() != TextPlace::none);
  if (known) order.text = tokens.text_text();
  return order;
}

bool StatedOrder::agrees_with(const StatedOrder& other) const {
  const auto agree = [](const std::string& a, const std::string& b) {
    return a.empty() || b.empty() || a == b;
  };
  return agree(grid, other.grid) && agree(text, other.text) && agree(segments, other.segments);
}

std::string StatedOrder::describe() const {
  std::string words;
  for (const auto& [name, value] : {std::pair("grid ", &grid), {"text ", &text}}) {
    if (!value->empty()) words += (words.empty() ? "" : ", ") + (name + *value);
  }
  if (words.empty()) words = segments.empty() ? "not recorded" : "segments " + segments;
  return words;
}

std::filesystem::path block_facts_path(const std::filesystem::path& blocks) {
  return blocks.string() + ".json";
}

bool is_block_facts(const std::filesystem::path& file) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return false;
  try {
    read_facts_file(file.string());
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string block_facts_text(const BlockMaskFacts& facts, const std::filesystem::path& blocks,
                             uint64_t checksum) {
  OrderedJson json{{"format", kBlocksFormat},
                   {"attnscope_version", version()},
                   {"file", blocks.filename().string()},
                   {"checksum", checksum_text(checksum)},
                   {"capture", facts.capture},
                   {"capture_hash", facts.capture_hash},
                   {"mask", facts.mask},
                   {"block", facts.block},
                   {"order", facts.order},
                   {"queries", order_json(facts.queries)},
                   {"keys", order_json(facts.keys)}};
  json["heads"] = OrderedJson::array();
  for (const SavedHead& head : facts.heads) json["heads"].push_back(saved_head_json(head));
  return json_text(json, 1) + "\n";
}

std::optional<BlockMaskFacts> read_block_facts(const std::filesystem::path& blocks) {
  std::error_code none;
  if (!std::filesystem::exists(block_facts_path(blocks), none)) return std::nullopt;
  return BlockFactsReader(blocks).read();
}

}  // namespace attnscope
