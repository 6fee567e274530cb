#pragma once

#include <string>
#include <vector>

#include "cli/common/capture_options.h"
#include "cli/common/head_table.h"
#include "io/export/read/stored_maps.h"
#include "io/metrics/number_table.h"

namespace attnscope {

/// Throws Error(usage) where options that belong to captures were given with an export: facts that
/// override recorded ones, bare tensors, and how to compute.
void check_export_options(const CaptureOptions& capture, const RunOptions& run);

/// The first of these options that was given; empty where none was.
std::string capture_option_given(const CaptureOptions& capture, const RunOptions& run);

/// The places of the selected heads, in their order. Warns of what the selection names and the
/// export lacks. Throws Error(usage) naming what exists where nothing is left.
std::vector<size_t> select_stored(const std::vector<HeadName>& heads,
                                  const SelectionOptions& options, const Console& console);
/// The selected heads of these maps, chosen in the same way.
std::vector<StoredHead> select_stored(const StoredMaps& maps, const SelectionOptions& options,
                                      const Console& console);

/// The name of a head of what an export holds of a call.
HeadName stored_name(const StoredFacts& facts, int64_t batch, int64_t head);

/// head_label() of it.
std::string stored_label(const StoredHead& head);

/// Puts into `selection.holding` the heads of a table that --where holds for, by its numbers.
/// Nothing to do where no number is asked for. Throws Error(usage) where the table is of several
/// runs.
void settle_where_of_table(SelectionOptions& selection, const NumberTable& table);

}  // namespace attnscope
