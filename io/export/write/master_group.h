#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "io/export/format/export_layout.h"
#include "io/export/format/export_manifest.h"
#include "io/hdf5/hdf5_writer.h"

namespace attnscope {

/// A file that has heads of a group, by a name relative to the master's folder.
struct MasterSource {
  std::string file;
  int64_t first_head = 0;  ///< their place among the group's heads
  int64_t heads = 0;       ///< of each batch item
};

/// Writes the list of the files that a master links, /shards or /parts: `file`, `bytes` and
/// `checksum` along an axis of the name `axis`. Throws Error(file).
void write_linked_files(const Hdf5Writer& writer, const std::string& list, const std::string& axis,
                        std::span<const LinkedPart> files, const std::string& algorithm);

/// Writes /calls/NAME of a master: attributes, axes and coordinates of its own, and virtual
/// datasets of what the sources have in /calls/NAME, so that readers see one file. Checksums stay
/// with the sources. `kept` has the length of each list of a thresholded group, whose source is one
/// file; empty else. Throws Error(file).
void write_master_group(const Hdf5Writer& writer, hid_t calls, const ExportSpec& spec,
                        const ExportLayout& layout, const ExportGroup& group,
                        std::span<const MasterSource> sources, std::span<const int64_t> kept = {});

}  // namespace attnscope
