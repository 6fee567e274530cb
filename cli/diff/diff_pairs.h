#pragma once

#include <cstdint>
#include <vector>

#include "cli/common/capture_options.h"
#include "cli/diff/other_heads.h"
#include "core/problem/head_name.h"
#include "core/products/head_difference.h"
#include "io/capture/capture.h"

namespace attnscope {

/// Two heads that are compared, and what names them.
struct NamedPair {
  HeadName a, b;
  HeadPair heads;
};

/// What is compared, and what its tasks borrow.
struct DiffPairs {
  std::vector<std::vector<int64_t>> rows;  ///< of each selected call: a sample, or none (all rows)
  std::vector<NamedPair> pairs;
  /// Every head once, for the scans before the work.
  std::vector<HeadTask> tasks() const;
};

/// Each of the selected heads of `a` with the head of `b` that has its name, but for `other`.
/// `sample` rows of each, 0: all. Borrows the captures. Throws Error(usage) where `b` has no such
/// head, where a pair is a head and itself, or where the maps cannot be compared.
DiffPairs make_diff_pairs(const Capture& a, const SelectionOptions& selection, const Capture& b,
                          const OtherValues& other, int64_t sample);

}  // namespace attnscope
