#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/patterns/build_mask.h"
#include "io/masks/block_mask_file.h"

namespace attnscope {

/// A head whose mask is wanted, among those that are selected of its call (ascending).
struct SelectedHead {
  int64_t batch = 0, head = 0;
  std::span<const int64_t> selected;
};

/// A mask as `mask` and the window are asked for it: a pattern, a block mask from a file, or a tree
/// of these joined by "and" and "or". Immutable.
class MaskChoice {
 public:
  /// Reads "NAME[:key=value,…]", "FILE.npy" (with `block`) or "FILE.json". What files hold is
  /// reserved from the budget for the choice's life. Throws Error(usage) or Error(file).
  /// `option` is how messages name it.
  static MaskChoice parse(const std::string& text, const BlockSize& block, MemoryBudget& budget,
                          const std::string& option = "--mask");

  /// As it was written.
  const std::string& name() const { return name_; }
  /// Tokens of the blocks that it is made of; of a tree those that its parts' blocks are made of;
  /// nothing where it has none.
  std::optional<int64_t> own_block() const;
  /// True where terms stand for what it drops (Mask::dropped()).
  bool has_terms() const;
  /// True where blocks of it are of tokens that do not stand side by side.
  bool reorders() const;
  /// The files of blocks in it.
  void for_each_file(const std::function<void(const BlockMaskFile&)>& look) const;
  /// Says by what the head whose blocks a file has differs from the one that they are for: "layer 3
  /// head 2"; empty: they are its own, or nobody knows. The captures are not compared.
  std::string other_head(const AttentionProblem& problem, const SelectedHead& head) const;
  /// Throws Error(usage) where the mask does not fit the call, or the heads that are selected of
  /// it.
  void check(const AttentionProblem& problem, std::span<const int64_t> selected,
             const MaskResources& resources) const;
  Mask build(const AttentionProblem& problem, const SelectedHead& head,
             const MaskResources& resources) const;
  /// Bytes that build() makes and keeps, at most.
  int64_t bytes(const AttentionProblem& problem) const;
  /// Bytes that build() takes of the budget meanwhile, at least.
  int64_t least_build_bytes(const AttentionProblem& problem, const TileBackend& backend) const;
  /// Bytes that measuring it takes beside what every mask does, with `rows` rows under way.
  int64_t measuring_bytes(const AttentionProblem& problem, int64_t rows, bool with_table) const;

 private:
  enum class Kind : uint8_t { pattern, blocks, all, any };
  static MaskChoice parse_text(const std::string& text, const std::string& option,
                               const std::string& folder, const BlockSize& block,
                               MemoryBudget& budget);
  friend class MaskTree;

  Kind kind_ = Kind::pattern;
  std::string name_;
  MaskPattern pattern_;
  std::shared_ptr<const BlockMaskFile> file_;
  std::vector<MaskChoice> children_;
};

}  // namespace attnscope
