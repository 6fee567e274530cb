#pragma once

#include <string>
#include <vector>

#include "cli/capture_options.h"
#include "io/stored_maps.h"

namespace attnscope {

/// Throws Error(usage) where options that belong to captures were given with an export: facts that
/// override recorded ones, bare tensors, and how to compute.
void check_export_options(const CaptureOptions& capture, const RunOptions& run);

/// The selected heads of an export, in its order. Steps, layers, heads and batch items are chosen
/// among those that it holds. Throws Error(usage) naming what exists.
std::vector<StoredHead> select_stored(const StoredMaps& maps, const SelectionOptions& options);

/// "step 10 layer 2 cond joint batch 0 head 3".
std::string stored_label(const StoredHead& head);

}  // namespace attnscope
