#pragma once

#include <filesystem>
#include <vector>

namespace attnscope {

class Capture;

/// The paths that an output of a run that reads the capture must not replace, nor be written into
/// (OutputFileOptions::inputs): its files and, where it is a folder, that. Beside a single file
/// there is room for others.
std::vector<std::filesystem::path> guarded_inputs(const Capture& capture);

}  // namespace attnscope
