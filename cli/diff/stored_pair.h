#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/products/head_difference.h"
#include "io/export/read/stored_maps.h"

namespace attnscope {

/// Two exported heads that are compared: the rows and keys that both files have, as they stand
/// there. Borrows the files and heads.
class StoredPair {
 public:
  /// `sample`: of as many evenly spread rows of the map those that both have; 0: all. Throws
  /// Error(usage) where the maps are not of one size, score and product, or have no row or key in
  /// common.
  StoredPair(const StoredMaps& maps_a, const StoredHead& a, const StoredMaps& maps_b,
             const StoredHead& b, int64_t sample);

  /// Of both maps.
  int64_t entries() const { return 2 * std::ssize(queries_) * keys_.size(); }

  /// As many rows at once as the budget allows; `progress` gets how many entries are done. Nothing
  /// where it was stopped. Throws Error(resource) where not even a row fits, Error(file) where a
  /// file is damaged.
  std::optional<HeadDifference> compare(int64_t top, MemoryBudget& budget,
                                        const std::stop_token& stop,
                                        const std::function<void(int64_t)>& progress) const;

 private:
  bool has_all_keys() const;

  const StoredMaps &maps_a_, &maps_b_;
  const StoredHead &a_, &b_;
  std::vector<int64_t> queries_;
  IndexRange keys_;
  bool normalised_ = false;
};

}  // namespace attnscope
