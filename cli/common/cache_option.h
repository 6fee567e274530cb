#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/common/parser.h"
#include "io/capture/capture.h"

namespace attnscope {

/// Adds --cache DIR|none.
void add_cache_option(CommandParser& command, std::string& cache);

/// The folders that caches of a capture are looked for and written in, in this order. Default:
/// .attnscope in the capture's folder (of one file: in the file's folder), then attnscope in
/// $XDG_CACHE_HOME or ~/.cache. "none": no folder; otherwise the folder that was named alone.
std::vector<std::filesystem::path> cache_folders(const std::string& cache, const Capture& capture);

}  // namespace attnscope
