#pragma once

#include "io/export/format/export_manifest.h"
#include "io/hdf5/hdf5_writer.h"

namespace attnscope {

/// Creates /complete (0) and /structure_checksum and tells `stored` where they stand. Throws
/// Error(file).
void create_export_marks(const Hdf5Writer& writer, std::string_view complete_name,
                         ExportManifest& stored);

/// The last step of a file that is written through the library: its checksum, then the mark of
/// completeness.
void seal_export(const ExportManifest& stored, const PosixFile& file);

/// True where everything that structure_checksum() covers is as it was written.
bool has_sound_structure(const ExportManifest& stored, const PosixFile& file);
/// Throws Error(file) where it is not.
void require_sound_structure(const ExportManifest& stored, const PosixFile& file);

/// True where the file says that it is complete. Throws Error(file) where it says neither.
bool is_marked_complete(const ExportManifest& stored, const PosixFile& file);

}  // namespace attnscope
