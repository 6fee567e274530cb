#pragma once

#include <cstdint>
#include <span>

#include "core/stream/tile_backend.h"
#include "kernels/cpu/keys/key_block_product.h"

namespace attnscope {

/// A row's normaliser while it is summed: total·2^reference. Softmax entries are kept relative to
/// an integer reference near the row's largest exponent, so nothing overflows and nothing above
/// 2⁻¹⁰⁰ of the largest weight is lost; because it only scales by powers of two, no bit of a sum or
/// weight depends on which reference it is.
struct RowSum {
  double total = 0;
  double moment = 0;  ///< Σ of entry·(t − reference), where it was asked for
  float reference = 0;
  bool anchored = false;    ///< the reference has been held against an entry that counts
  bool unresolved = false;  ///< entries were met that lie below what float32 resolves
};

/// Entries of a row group that were kept from earlier key blocks: of its first `rows` rows, `count`
/// each.
struct KeptEntries {
  float* data = nullptr;
  int64_t stride = 0;
  int64_t count = 0;
  int64_t rows = 0;
};

/// The results of add_softmax_block that are wanted beside the sums.
struct WantedEntries {
  bool moments = false;
  bool entries = true;  ///< left in the block's output, which is scratch otherwise
};

/// Adds a block's softmax entries, and moments where they are wanted, to the sums of its rows.
/// Where a reference turns out too far off, it is moved, `kept` is rescaled, and the block is
/// computed again, as it is where products far below 0 spoil a sum. `sums` has one entry for each
/// of the block's rows. Returns the position of a row whose logits float32 cannot resolve (beyond
/// 2²² in base 2, or not finite), or −1.
int64_t add_softmax_block(const KeyBlockProduct& block, std::span<RowSum> sums,
                          const KeptEntries& kept, WantedEntries wanted);

/// Adds the sums of a group's rows with `blocks`, which blocks_of_run has found fit for it, until a
/// block does not fit its rows' references; returns how many were added. `sums` has one entry for
/// each row that is computed.
int64_t add_softmax_run(const PackedHead& head, const RowGroup& group, IndexRange blocks,
                        std::span<RowSum> sums, bool with_moments);

/// add_softmax_block for linear scores.
int64_t add_linear_block(const KeyBlockProduct& block, std::span<RowSum> sums);

/// True where all entries of the row lie below −2²² in base 2, where float32 cannot resolve them.
bool is_unresolved(const RowSum& sum);

/// total·2^reference in RowNorm's canonical form.
RowNorm norm_of(const RowSum& sum);

/// The entropy in nats of a softmax row whose moments were summed; 0 for a masked row. Of the mass
/// on keys, where a sink has the rest.
double entropy_of(const RowSum& sum);

/// The factor from a kept entry to its weight: 2^(reference − exponent) / sum; 0 for a masked row.
float weight_factor(const RowNorm& norm, float reference);

}  // namespace attnscope
