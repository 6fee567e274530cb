#pragma once

#include <string>
#include <vector>

#include "cli/capture_options.h"
#include "io/stored_maps.h"

namespace attnscope {

/// Throws Error(usage) where options that belong to captures were given with an export: facts that
/// override recorded ones, bare tensors, and how to compute.
void check_export_options(const CaptureOptions& capture, const RunOptions& run);

/// What names a head of an export.
struct StoredHeadName {
  int64_t step = 0, layer = 0;
  std::string branch, kind;
  int64_t batch = 0, head = 0;
};

/// The places of the selected heads, in their order. Steps, layers, heads and batch items are
/// chosen among those that the export holds. Throws Error(usage) naming what exists.
std::vector<size_t> select_stored(const std::vector<StoredHeadName>& heads,
                                  const SelectionOptions& options);
/// The same as heads.
std::vector<StoredHead> select_stored(const StoredMaps& maps, const SelectionOptions& options);

/// "step 10 layer 2 cond joint batch 0 head 3".
std::string stored_label(const StoredHeadName& head);
std::string stored_label(const StoredHead& head);

}  // namespace attnscope
