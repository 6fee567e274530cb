#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/patterns/build_mask.h"

namespace attnscope {

/// A mask as `mask` and the window are asked for it: a pattern, a block mask from a file, or a tree
/// of these joined by "and" and "or". Immutable.
class MaskChoice {
 public:
  /// Reads "NAME[:key=value,…]", "FILE.npy" (with `block`) or "FILE.json". What files hold is
  /// reserved from the budget for the choice's life. Throws Error(usage) or Error(file).
  /// `option` is how messages name it.
  static MaskChoice parse(const std::string& text, std::optional<int64_t> block,
                          MemoryBudget& budget, const std::string& option = "--mask");

  /// As it was written.
  const std::string& name() const { return name_; }
  /// Throws Error(usage) where the mask does not fit the call.
  void check(const AttentionProblem& problem, const MaskResources& resources) const;
  Mask build(const AttentionProblem& problem, int64_t batch, int64_t head,
             const MaskResources& resources) const;
  /// Bytes that build() makes and keeps, at most.
  int64_t bytes(const AttentionProblem& problem) const;

 private:
  enum class Kind : uint8_t { pattern, blocks, all, any };
  static MaskChoice parse_text(const std::string& text, const std::string& option,
                               const std::string& folder, std::optional<int64_t> block,
                               MemoryBudget& budget);
  friend class MaskTree;

  Kind kind_ = Kind::pattern;
  std::string name_, option_ = "--mask";
  MaskPattern pattern_;
  Mask blocks_;
  std::shared_ptr<MemoryReservation> reservation_;
  std::vector<MaskChoice> children_;
};

}  // namespace attnscope
