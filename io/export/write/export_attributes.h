#pragma once

#include "io/export/format/export_layout.h"
#include "io/hdf5/hdf5_writer.h"

namespace attnscope {

/// The root's attributes: of the whole file, and which part it is. All of these throw Error(file).
void write_root_attributes(const Hdf5Writer& writer, const ExportSpec& spec);
/// The root's attributes of a shard file, which holds one group and is one file in the whole export
/// and in a part of it: its hash is that of the group's call.
void write_shard_attributes(const Hdf5Writer& writer, const ExportSpec& spec,
                            const ExportGroup& group);

/// The attributes of a call's group. For cross attention the grid belongs to the queries and the
/// text to the keys.
void write_group_attributes(const Hdf5Writer& writer, hid_t group, const ExportSpec& spec,
                            const ExportGroup& layout);

/// The call's description as JSON in a part's group, for who makes the whole of parts.
void write_part_call(const Hdf5Writer& writer, hid_t group, const ExportSpec& spec,
                     const ExportGroup& layout);

/// Name, unit, encoding and coordinates of weights or logits.
void describe_entries(const Hdf5Writer& writer, const Hdf5Dataset& dataset,
                      const ExportLayout& layout);

/// Name, unit and coordinates of a dataset of LSEs.
void describe_lse(const Hdf5Writer& writer, const Hdf5Dataset& dataset, const ExportGroup& group);

/// The type that entries of an encoding are stored in.
hid_t entry_type(const Hdf5Writer& writer, Encoding encoding);

}  // namespace attnscope
