#pragma once

#include <filesystem>
#include <vector>

#include "viewer/gl/framebuffer.h"

namespace attnscope {

/// Throws Error(usage) where the name does not end in .png.
void check_picture_name(const std::filesystem::path& file);

/// Writes what was read back as a PNG, through FILE.part; replaces FILE only with `force`. Throws
/// Error(file), and Error(usage) where the name does not end in .png.
void write_picture(const gl::ReadPixels& picture, const std::filesystem::path& file, bool force);

}  // namespace attnscope
