#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/mask/mask.h"
#include "core/problem/attention_problem.h"
#include "io/files/staged_file.h"
#include "io/masks/block_mask_facts.h"

namespace attnscope {

/// Tokens of a file's blocks, as who names the file knows them.
struct BlockSize {
  std::optional<int64_t> told = {};       ///< a contradiction to the file's facts is an error
  std::optional<int64_t> otherwise = {};  ///< where neither this nor the facts say
};

/// A block mask from a .npy of bool [query blocks, key blocks] or [heads, query blocks, key
/// blocks], True = kept, with what X.npy.json says of it. Blocks are of as many queries as keys,
/// from the first token on. Immutable; thread-safe.
class BlockMaskFile {
 public:
  /// Reserves the memory that it keeps, and meanwhile what reading takes, from `budget`. `name` is
  /// how messages name it. Throws Error(file) where the file is anything else, Error(usage) where
  /// the size of its blocks is not known, or told otherwise than by its facts.
  BlockMaskFile(const std::filesystem::path& path, const std::string& name, const BlockSize& block,
                MemoryBudget& budget);

  const std::string& name() const { return name_; }
  int64_t block() const { return block_; }
  const std::optional<BlockMaskFacts>& facts() const { return facts_; }

  /// Throws Error(usage) where the blocks do not cover the call's map, are of tokens in another
  /// order, or there are none for one of the `selected` heads.
  void check(const AttentionProblem& problem, std::span<const int64_t> selected) const;
  /// Which plane is that of a head: each head's own where all of `selected` are among those of the
  /// facts, or of the call; the only one; or, of as many as are selected, the one at its place.
  size_t plane_of(const AttentionProblem& problem, int64_t head,
                  std::span<const int64_t> selected) const;
  const Mask& plane(size_t number) const { return planes_[number]; }

 private:
  std::string name_;
  int64_t block_ = 0;
  std::optional<BlockMaskFacts> facts_;
  MemoryReservation reservation_;
  std::vector<Mask> planes_;
};

/// Writes a block mask and its facts, head by head, each under a temporary name until commit().
/// Not thread-safe.
class BlockMaskWriter {
 public:
  /// Throws Error(file) where one of both names is taken and not `force`d, or an input; facts of
  /// blocks that are gone make room. Creates nothing.
  static void check_target(const std::filesystem::path& path, bool force,
                           std::span<const std::filesystem::path> inputs);

  BlockMaskWriter(const std::filesystem::path& path, bool force, int64_t heads,
                  int64_t query_blocks, int64_t key_blocks);
  /// Rows of blocks of the next head, 0 or 1 each, in order.
  void append(std::span<const uint8_t> bits);
  void commit(const BlockMaskFacts& facts);

 private:
  const std::filesystem::path path_;
  const bool force_;
  StagedFile file_;
};

}  // namespace attnscope
