#pragma once

#include <span>

#include "io/export/format/export_layout.h"
#include "io/hdf5/hdf5_writer.h"

namespace attnscope {

/// Writes /call_index, which says of each group of /calls in one table which call it is: step and
/// layer (int64), branch, block, slot and group (strings), each [call]. A step or layer that nobody
/// recorded is kNotRecorded, a branch empty, and the group's attribute kNotRecordedName names them.
/// Throws Error(file).
void write_call_index(const Hdf5Writer& writer, std::span<const ExportGroup> groups);

}  // namespace attnscope
