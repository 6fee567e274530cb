#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/capture/capture_writer.h"
#include "io/rank_parts/part_set.h"

namespace attnscope {

/// Result of joining.
struct StitchSize {
  int64_t calls = 0, heads = 0, bytes = 0;  ///< heads: of all batch items; bytes: of all tensors
  bool second_format = false;               ///< of a call, and so of the folder
};

/// Checks all calls by their facts and shapes, and what the outputs' rows are. Throws Error(file)
/// where parts do not fit, Error(usage) for several calls in a single .safetensors file, or where
/// `out` is one of the folders that are read.
StitchSize check_stitch(const PartSet& parts, const std::filesystem::path& out);

/// Writes OUT.safetensors (one call) or a folder OUT: the capture that one process would have
/// recorded, with the pictures of the first rank that has some. It is opened and checked before it
/// gets its name. Memory and errors as CaptureWriter's.
void write_stitch(const PartSet& parts, const std::filesystem::path& out,
                  const CopyControl& control);

/// Calls and tensors that the capture leaves out, one line each.
std::vector<std::string> stitch_notes(const PartSet& parts);

}  // namespace attnscope
