#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/diff/diff_side.h"
#include "cli/diff/other_heads.h"
#include "core/products/differences/difference_sinks.h"
#include "core/products/differences/head_difference.h"

namespace attnscope {

/// Both sides of a run.
struct DiffSides {
  const DiffSide& a;
  const DiffSide& b;                     ///< may be `a`
  const TileBackend* backend = nullptr;  ///< null: both are exports
};

/// Two heads, and the rows and keys of their maps that are compared.
struct ComparedPair {
  SideHead a, b;
  SideCut cut_a, cut_b;
  int64_t map_queries = 0, map_keys = 0;  ///< of the maps, where their tokens are the same
  int64_t rows = 0;                       ///< that are compared
  IndexRange keys;    ///< of the sequence; of pairs of other tokens all that are compared together
  bool whole = true;  ///< all keys are
  bool normalised = true;  ///< whole rows add up to 1, or to 0
  bool sinks = false;      ///< stand in rows of a side
  bool logits = false;
  /// Of maps of other tokens: the parts that both have, by places among the compared rows and keys.
  /// Empty: the tokens are the same.
  std::vector<SequencePart> query_parts, key_parts;

  bool same_tokens() const { return query_parts.empty(); }
  bool of_exports() const { return a.call == nullptr || b.call == nullptr; }
  int64_t query_at(int64_t row) const {
    return cut_a.list ? (*cut_a.list)[static_cast<size_t>(row)] : row;
  }
  /// True where all rows and keys of the maps are compared.
  bool has_all() const { return same_tokens() && whole && rows == map_queries; }
};

/// How pairs are cut.
struct DiffCut {
  int64_t sample = 0;       ///< of as many evenly spread rows those that both have; 0: all
  bool by_segment = false;  ///< also where the tokens are the same
};

/// The rows and keys that both have; of maps of other tokens the segments that have the same name,
/// number of tokens and grid. Throws Error(usage) where there are none, or the maps have other
/// scores.
ComparedPair compared_pair(const SideHead& a, const SideHead& b, const DiffCut& cut);

/// Each selected head of A with that of B. Throws Error(usage).
std::vector<ComparedPair> compared_pairs(const DiffSides& sides, const SelectionOptions& selection,
                                         const OtherValues& other, const DiffCut& cut,
                                         const Console& console);

/// The pair's sides, which borrow it.
struct OpenedPair {
  OpenedPair(const DiffSides& sides, const ComparedPair& pair);
  std::unique_ptr<HeadMap> a, b;
};

/// Every head of captures once, for the scans before the work.
std::vector<HeadTask> tasks_of(const std::vector<ComparedPair>& pairs);

}  // namespace attnscope
