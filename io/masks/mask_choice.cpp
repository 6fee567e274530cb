#include "io/masks/mask_choice.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/base/error.h"
#include "core/mask/mask_union.h"
#include "core/patterns/block_selectors.h"
#include "io/files/file_text.h"
#include "io/files/json_types.h"
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
    const std::string text = read_file_text(file_, "a tree of masks", kMostBytes);
    return node(parse_strict_json(text, file_, ""), "the mask");
  }

 private:
  MaskChoice node(const Json& json, const std::string& where) const {
    if (json.is_string()) return leaf(json.get<std::string>(), where, {});
    if (json.is_array()) return join(json, where, MaskChoice::Kind::any);
    if (json.is_object() && json.size() == 1 && json.contains("and")) {
      return join(json["and"], where + " and", MaskChoice::Kind::all);
    }
    if (json.is_object() && json.size() == 1 && json.contains("or")) {
      return join(json["or"], where + " or", MaskChoice::Kind::any);
    }
    if (json.is_object() && json.size() == 2 && json.contains("file") && json.contains("block") &&
        json["file"].is_string() && json["block"].is_number_integer()) {
      return leaf(json["file"].get<std::string>(), where, {.told = json["block"].get<int64_t>()});
    }
    throw file_error(
        file_, where,
        "expected a pattern's text, {\"and\": [...]}, {\"or\": [...]}, a list (\"or\") "
        "or {\"file\": \"X.npy\", \"block\": N}");
  }

  MaskChoice join(const Json& list, const std::string& where, MaskChoice::Kind kind) const {
    if (!list.is_array() || list.empty()) {
      throw file_error(file_, where, "expected a list of masks that is not empty");
    }
    MaskChoice choice;
    choice.kind_ = kind;
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string place = fmt::format("{}[{}]", where, i);
      choice.children_.push_back(node(list[i], place));
      const MaskChoice& child = choice.children_.back();
      if (list.size() == 1 || !child.has_terms()) continue;
      throw file_error(file_, place,
                       child.name_ +
                           ": it is more than a mask, which no other mask can be "
                           "joined with (rest=renormalise goes without them)");
    }
    return choice;
  }

  MaskChoice leaf(const std::string& text, const std::string& where, const BlockSize& block) const {
    if (std::filesystem::path(text).extension() == ".json") {
      throw file_error(file_, where, "a tree of masks names no other tree (got " + text + ")");
    }
    return MaskChoice::parse_text(text, file_ + ": " + where + ":", folder_, block, budget_);
  }

  const std::string file_, folder_;
  MemoryBudget& budget_;
};

MaskChoice MaskChoice::parse(const std::string& text, const BlockSize& block, MemoryBudget& budget,
                             const std::string& option) {
  MaskChoice choice = std::filesystem::path(text).extension() == ".json"
                          ? MaskTree(text, budget).read()
                          : parse_text(text, option, "", block, budget);
  choice.name_ = text;
  return choice;
}

MaskChoice MaskChoice::parse_text(const std::string& text, const std::string& option,
                                  const std::string& folder, const BlockSize& block,
                                  MemoryBudget& budget) {
  MaskChoice choice;
  choice.name_ = text;
  if (std::filesystem::path(text).extension() != ".npy") {
    choice.pattern_ = parse_mask_pattern(text, option);
    return choice;
  }
  choice.kind_ = Kind::blocks;
  choice.file_ = std::make_shared<BlockMaskFile>(std::filesystem::path(folder) / text,
                                                 option + " " + text, block, budget);
  return choice;
}

std::optional<int64_t> MaskChoice::own_block() const {
  if (kind_ == Kind::pattern) return pattern_.own_block();
  if (kind_ == Kind::blocks) return file_->block();
  std::optional<int64_t> block;
  for (const MaskChoice& child : children_) {
    const std::optional<int64_t> own = child.own_block();
    if (own) block = std::gcd(block.value_or(0), *own);
  }
  return block;
}

bool MaskChoice::has_terms() const {
  if (kind_ == Kind::pattern) return pattern_.rest != BlockRest::renormalise;
  return children_.size() == 1 && children_.front().has_terms();
}

bool MaskChoice::reorders() const {
  return pattern_.reorders() || std::any_of(children_.begin(), children_.end(),
                                            [](const MaskChoice& c) { return c.reorders(); });
}

void MaskChoice::for_each_file(const std::function<void(const BlockMaskFile&)>& look) const {
  if (file_) look(*file_);
  for (const MaskChoice& child : children_) child.for_each_file(look);
}

std::string MaskChoice::other_head(const AttentionProblem& problem,
                                   const SelectedHead& head) const {
  const HeadName own = head_name(problem.id(), head.batch, head.head);
  std::string text;
  const auto add = [&](bool differs, const std::string& word) {
    if (differs) text += (text.empty() ? "" : " ") + one_line(word);
  };
  for_each_file([&](const BlockMaskFile& file) {
    if (!file.facts() || !text.empty()) return;
    const HeadName& of = file.facts()->heads[file.plane_of(problem, head.head, head.selected)].name;
    add(of.step != own.step, "step " + std::to_string(of.step));
    add(of.layer != own.layer || of.place != own.place, layer_text(of.layer, of.place));
    add(of.branch != own.branch, of.branch);
    add(of.kind != own.kind, of.kind);
    add(of.batch != own.batch, "batch " + std::to_string(of.batch));
    add(of.head != own.head, "head " + std::to_string(of.head));
  });
  return text;
}

void MaskChoice::check(const AttentionProblem& problem, std::span<const int64_t> selected,
                       const MaskResources& resources) const {
  if (file_) file_->check(problem, selected);
  if (kind_ == Kind::pattern && pattern_.is_selector())
    check_selector(pattern_, problem, selected.empty() ? 0 : selected.front());
  // Other patterns that look at a head fit every call.
  if (kind_ == Kind::pattern && !pattern_.needs_head()) {
    build_mask(pattern_, problem, 0, 0, resources);
  }
  for (const MaskChoice& child : children_) child.check(problem, selected, resources);
}

Mask MaskChoice::build(const AttentionProblem& problem, const SelectedHead& head,
                       const MaskResources& resources) const {
  if (kind_ == Kind::pattern) {
    return build_mask(pattern_, problem, head.batch, head.head, resources);
  }
  if (kind_ == Kind::blocks) {
    return file_->plane(file_->plane_of(problem, head.head, head.selected));
  }
  if (children_.size() == 1) return children_.front().build(problem, head, resources);
  std::vector<Mask> masks;
  for (const MaskChoice& child : children_) {
    masks.push_back(child.build(problem, head, resources));
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

int64_t MaskChoice::least_build_bytes(const AttentionProblem& problem,
                                      const TileBackend& backend) const {
  int64_t most = 0;
  if (kind_ == Kind::pattern) most = attnscope::least_build_bytes(pattern_, problem, backend);
  for (const MaskChoice& child : children_) {
    most = std::max(most, child.least_build_bytes(problem, backend));
  }
  return most;
}

int64_t MaskChoice::measuring_bytes(const AttentionProblem& problem, int64_t rows,
                                    bool with_table) const {
  // Joined masks are no picked blocks any more.
  if (children_.size() == 1) return children_.front().measuring_bytes(problem, rows, with_table);
  const bool picked = kind_ == Kind::pattern && pattern_.is_selector();
  return picked ? picked_measuring_bytes(pattern_, problem, rows, with_table) : 0;
}

}  // namespace attnscope
