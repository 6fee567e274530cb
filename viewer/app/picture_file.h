#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "io/pictures/picture_style.h"
#include "viewer/gl/framebuffer.h"

namespace attnscope {

/// True of the endings of pages.
bool is_page_name(const std::filesystem::path& file);
/// The style of a page that the window writes: vectors for print, pixels for a screen, dark as the
/// window is or light as a slide.
PictureStyle page_style(const std::filesystem::path& file, bool light);

/// Throws Error(usage) where the name does not end in .png.
void check_picture_name(const std::filesystem::path& file);

/// Writes what was read back as a PNG, through FILE.part; replaces FILE only with `force`, and
/// nothing of `inputs` (OutputFileOptions). Throws Error(file), and Error(usage) where the name
/// does not end in .png.
void write_picture(const gl::ReadPixels& picture, const std::filesystem::path& file, bool force,
                   std::span<const std::filesystem::path> inputs);

}  // namespace attnscope
