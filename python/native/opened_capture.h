#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/common/capture_options.h"
#include "io/capture/capture.h"
#include "python/native/engine.h"

namespace attnscope {

/// A capture and what its user should know of it.
struct OpenedCapture {
  std::shared_ptr<const Capture> capture;
  std::vector<std::string> warnings;
  std::string preset = {};  ///< that it was opened with; empty: none
};

/// Opens a capture by the words of the command line's options ("capture", "q", "k", "v", "layout",
/// "grid", "text", "scale", "mask", "score", "preset", "rope", "pattern", "cu_seqlens",
/// "cu_seqlens_k", "links", "as NAME" of each fact that is told; "check" = "no" leaves out the look
/// at its own outputs that all commands take). Throws Error(usage) for others, and what opening
/// throws.
OpenedCapture open_watched(const std::map<std::string, std::string>& options, const Engine& engine,
                           RunWatch& watch);

/// Reads "steps", "layers", "heads", "batch", "chunks", "branch", "kind", "blocks", "slots",
/// "pick", "from", "where" and "cache"; those from "branch" to "pick" are lists with commas. Throws
/// Error(usage) for other words, and what reading the file of "from" throws.
SelectionOptions selection_of_words(const std::map<std::string, std::string>& words);

}  // namespace attnscope
