#include "io/masks/mask_choice.h"

#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/mask/mask_union.h"
#include "io/capture/call/block_mask_file.h"
#include "io/files/input_file.h"
#include "io/files/strict_json.h"

namespace attnscope {

/// Reads the trees of JSON files.
class MaskTree {
 public:
  MaskTree(std::string file, MemoryBudget& budget)
      : file_(std::move(file)),
        folder_(std::filesystem::path(file_).parent_path().string()),
        budget_(budget) {}

  MaskChoice read() const {
    constexpr int64_t kMostBytes = 1 << 20;
    const InputFile input(file_);
    if (input.size() > kMostBytes) {
      throw file_error(file_, "",
                       fmt::format("is too large for a tree of masks (got {} bytes, limit {})",
                                   input.size(), kMostBytes));
    }
    std::string text(static_cast<size_t>(input.size()), '\0');
    input.read_at(0, std::as_writable_bytes(std::span(text)));
    return node(parse_strict_json(text, file_, ""), "the mask");
  }

 private:
  MaskChoice node(const nlohmann::json& json, const std::string& where) const {
    if (json.is_string()) return leaf(json.get<std::string>(), where, std::nullopt);
    if (json.is_array()) return join(json, where, MaskChoice::Kind::any);
    if (json.is_object() && json.size() == 1 && json.contains("and")) {
      return join(json["and"], where + " and", MaskChoice::Kind::all);
    }
    if (json.is_object() && json.size() == 1 && json.contains("or")) {
      return join(json["or"], where + " or", MaskChoice::Kind::any);
    }
    if (json.is_object() && json.size() == 2 && json.contains("file") && json.contains("block") &&
        json["file"].is_string() && json["block"].is_number_integer()) {
      return leaf(json["file"].get<std::string>(), where, json["block"].get<int64_t>());
    }
    throw file_error(
        file_, where,
        "expected a pattern's text, {\"and\": [...]}, {\"or\": [...]}, a list (\"or\") "
        "or {\"file\": \"X.npy\", \"block\": N}");
  }

  MaskChoice join(const nlohmann::json& list, const std::string& where,
                  MaskChoice::Kind kind) const {
    if (!list.is_array() || list.empty()) {
      throw file_error(file_, where, "expected a list of masks that is not empty");
    }
    MaskChoice choice;
    choice.kind_ = kind;
    for (size_t i = 0; i < list.size(); ++i) {
      choice.children_.push_back(node(list[i], fmt::format("{}[{}]", where, i)));
    }
    return choice;
  }

  MaskChoice leaf(const std::string& text, const std::string& where,
                  std::optional<int64_t> block) const {
    if (std::filesystem::path(text).extension() == ".json") {
      throw file_error(file_, where, "a tree of masks names no other tree (got " + text + ")");
    }
    return MaskChoice::parse_text(text, file_ + ": " + where + ":", folder_, block, budget_);
  }

  const std::string file_, folder_;
  MemoryBudget& budget_;
};

MaskChoice MaskChoice::parse(const std::string& text, std::optional<int64_t> block,
                             MemoryBudget& budget, const std::string& option) {
  MaskChoice choice = std::filesystem::path(text).extension() == ".json"
                          ? MaskTree(text, budget).read()
                          : parse_text(text, option, "", block, budget);
  choice.name_ = text;
  choice.option_ = option;
  return choice;
}

MaskChoice MaskChoice::parse_text(const std::string& text, const std::string& option,
                                  const std::string& folder, std::optional<int64_t> block,
                                  MemoryBudget& budget) {
  MaskChoice choice;
  choice.name_ = text;
  if (std::filesystem::path(text).extension() != ".npy") {
    choice.pattern_ = parse_mask_pattern(text, option);
    return choice;
  }
  if (!block) {
    throw usage_error(option + " " + text + ": how many tokens is a block? Give --block N" +
                      (folder.empty() ? "" : " or {\"file\": ..., \"block\": N}"));
  }
  if (*block < 1) {
    throw usage_error(
        fmt::format("{} {}: a block has at least 1 token (got {})", option, text, *block));
  }
  const std::filesystem::path path = std::filesystem::path(folder) / text;
  choice.kind_ = Kind::blocks;
  choice.reservation_ = std::make_shared<MemoryReservation>(
      budget.reserve(block_mask_bytes(path), "the block mask " + text));
  choice.blocks_ = read_block_mask(path, *block, budget);
  return choice;
}

void MaskChoice::check(const AttentionProblem& problem, const MaskResources& resources) const {
  if (kind_ == Kind::blocks) {
    try {
      blocks_.check_shape(problem.batch(), problem.num_heads(), problem.num_queries(),
                          problem.num_keys());
    } catch (const Error& error) {
      throw usage_error(fmt::format("{} {}: {}: {}", option_, name_, problem.name(), error.what()));
    }
  }
  // Patterns that look at a head fit every call.
  if (kind_ == Kind::pattern && !pattern_.needs_head()) {
    build_mask(pattern_, problem, 0, 0, resources);
  }
  for (const MaskChoice& child : children_) child.check(problem, resources);
}

Mask MaskChoice::build(const AttentionProblem& problem, int64_t batch, int64_t head,
                       const MaskResources& resources) const {
  if (kind_ == Kind::pattern) return build_mask(pattern_, problem, batch, head, resources);
  if (kind_ == Kind::blocks) return blocks_;
  std::vector<Mask> masks;
  for (const MaskChoice& child : children_) {
    masks.push_back(child.build(problem, batch, head, resources));
  }
  if (kind_ == Kind::any) return mask_union(std::move(masks));
  Mask all;
  for (const Mask& mask : masks) all = all & mask;
  return all;
}

int64_t MaskChoice::bytes(const AttentionProblem& problem) const {
  int64_t total = kind_ == Kind::pattern ? mask_bytes(pattern_, problem) : 0;
  for (const MaskChoice& child : children_) total += child.bytes(problem);
  return total;
}

}  // namespace attnscope
