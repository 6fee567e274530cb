#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/mask/mask.h"
#include "core/mask/picked_blocks.h"
#include "core/patterns/block_runs.h"

namespace attnscope {

/// Masks that are cut into the same blocks: a row's sums over these are taken once for all of them.
/// Immutable but for add_masses(), which is thread-safe.
class PickedGroup {
 public:
  /// Keys of whose weights sums in float32 are taken.
  static constexpr int64_t kKeys = 256;

  /// `masks` are borrowed; those at `members` have equal blocks. `with_table`: masses of pairs of
  /// blocks are added up.
  PickedGroup(std::span<const Mask> masks, std::vector<size_t> members, bool with_table);
  /// The groups of all masks that are made of picked blocks.
  static std::vector<PickedGroup> of(std::span<const Mask> masks, bool with_table);
  /// Bytes that groups of these masks keep, at most, and those that a worker takes for each row.
  static int64_t bytes(std::span<const Mask> masks, bool with_table);
  static int64_t row_bytes(std::span<const Mask> masks);
  /// Of one mask that is still to be made, of so many keys and blocks.
  static int64_t bytes(int64_t keys, int64_t query_blocks, int64_t key_blocks, bool with_table);
  static int64_t row_bytes(int64_t key_blocks) { return key_blocks * 16; }
  /// Bytes of a worker's output of some keys.
  static int64_t slot_bytes(int64_t width) { return kKeys * width * 4; }

  const std::vector<size_t>& members() const { return members_; }
  const DroppedTerms& terms(size_t member) const { return *masks_[members_[member]].dropped(); }
  const BlockPicks& picks(size_t member) const { return *terms(member).picks; }
  const TokenBlocks& queries() const { return picks(0).queries; }
  const TokenBlocks& keys() const { return picks(0).keys; }

  /// A block of keys among kKeys of them, and its runs there.
  struct Slot {
    int64_t block = 0;
    std::vector<IndexRange> tokens;
  };
  /// Of the keys from kKeys·part on.
  const std::vector<Slot>& slots(int64_t part) const { return slots_[static_cast<size_t>(part)]; }

  /// Adds a row's masses, [key blocks], to those of its block. Exact to 2^-40 a row, in any order.
  void add_masses(int64_t query_block, std::span<const double> masses);
  /// Of the pairs that a mask may pick at most as many in a row of blocks as it does: the largest
  /// mass, over all rows; nothing without a table.
  std::optional<double> best_mass(size_t member) const;

 private:
  std::span<const Mask> masks_;
  std::vector<size_t> members_;
  std::vector<std::vector<Slot>> slots_;
  std::vector<std::atomic<int64_t>> table_;  ///< [query blocks, key blocks]
};

}  // namespace attnscope
