#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/mask/picked_blocks.h"
#include "core/patterns/block_scores.h"
#include "core/patterns/mask_pattern.h"
#include "core/patterns/scored_head.h"
#include "core/problem/attention_problem.h"

namespace attnscope {

/// All that a selector computes of a head before its rule decides: it holds for every budget. A
/// value.
struct ScoredBlocks {
  TokenBlocks queries, keys;
  std::vector<int64_t> rows, columns;  ///< the blocks of either side that are chosen among
  /// [blocks, d]; those of keys less `centre`, where that is not empty.
  std::vector<double> query_means, key_means, centre;
  bool same_tokens = false;                        ///< keys are the queries' tokens
  BlockTable scores;                               ///< [rows, columns]
  std::vector<double> deviations;                  ///< sol: of the rows' scores
  std::vector<uint8_t> alike_rows, alike_columns;  ///< sparge: [blocks], 1 = compact
};

/// True of a selector of tiles of the video's grid.
bool has_tiles(const MaskPattern& pattern);
/// Tokens of its blocks, where they are no tiles.
int64_t query_block(const MaskPattern& pattern);
int64_t key_block(const MaskPattern& pattern);
/// The blocks that both sides are cut into.
TokenBlocks query_blocks_of(const MaskPattern& pattern, const AttentionProblem& problem);
TokenBlocks key_blocks_of(const MaskPattern& pattern, const AttentionProblem& problem);

/// Scores as the published code of the pattern's kernel has them, in double. Throws
/// Error(interrupted) on a stop.
ScoredBlocks score_blocks(const MaskPattern& pattern, const ScoredHead& head);
/// Patterns whose texts are equal have the same ScoredBlocks of a head.
std::string score_identity(const MaskPattern& pattern);

/// Keeps the last ScoredBlocks, so that rules which differ in their budget alone share them. Not
/// thread-safe.
class ScoreKeeper {
 public:
  std::shared_ptr<const ScoredBlocks> get(const MaskPattern& pattern, const ScoredHead& head);

 private:
  const AttentionProblem* problem_ = nullptr;
  int64_t batch_ = 0, head_ = 0;
  std::string identity_;
  std::shared_ptr<const ScoredBlocks> kept_;
};

}  // namespace attnscope
