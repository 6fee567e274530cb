#pragma once

#include <string>

#include "io/export/format/export_manifest.h"

namespace attnscope {

/// The header of an export's journal: what decides the content of the file, and which start of the
/// machine wrote it. JSON.
std::string make_export_header(const ExportManifest& stored);

/// Compares a header with the export that is asked for. Empty where they have the same content,
/// otherwise what differs, in words. Throws Error(file) naming `file` when it is no header.
std::string header_difference(const std::string& header, const ExportManifest& wanted,
                              const std::string& file);

/// Compares two exports as header_difference() does: empty where they have the same content.
std::string content_difference(const ExportManifest& there, const ExportManifest& wanted);

/// True where the machine has been started anew since the header was written: without syncs,
/// less may have reached the disk than the journal says.
bool machine_restarted_since(const std::string& header);

}  // namespace attnscope
