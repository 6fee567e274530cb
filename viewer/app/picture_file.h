#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "viewer/gl/framebuffer.h"

namespace attnscope {

/// Throws Error(usage) where the name does not end in .png.
void check_picture_name(const std::filesystem::path& file);

/// Writes what was read back as a PNG, through FILE.part; replaces FILE only with `force`, and
/// nothing of `inputs` (OutputFileOptions). Throws Error(file), and Error(usage) where the name
/// does not end in .png.
void write_picture(const gl::ReadPixels& picture, const std::filesystem::path& file, bool force,
                   std::span<const std::filesystem::path> inputs);

}  // namespace attnscope
