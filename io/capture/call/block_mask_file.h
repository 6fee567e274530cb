#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/mask/mask.h"
#include "io/files/staged_file.h"

namespace attnscope {

/// A block mask from a .npy of bool [query blocks, key blocks] or [heads, query blocks, key
/// blocks], True = kept; blocks are `block` x `block` tokens from the first on. What reading takes
/// is reserved from `budget` meanwhile. Throws Error(file) where the file is anything else.
Mask read_block_mask(const std::filesystem::path& path, int64_t block, MemoryBudget& budget);
/// Bytes that a mask of the file keeps.
int64_t block_mask_bytes(const std::filesystem::path& path);

/// Writes such a file, head by head, under a temporary name until commit(). Not thread-safe.
class BlockMaskWriter {
 public:
  BlockMaskWriter(const std::filesystem::path& path, bool force, int64_t heads,
                  int64_t query_blocks, int64_t key_blocks);
  /// Rows of blocks of the next head, 0 or 1 each, in order.
  void append(std::span<const uint8_t> bits);
  void commit() { file_.commit(); }

 private:
  StagedFile file_;
};

}  // namespace attnscope
