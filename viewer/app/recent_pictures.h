#pragma once

#include <filesystem>
#include <optional>

#include "io/pictures/canvas.h"
#include "viewer/gl/framebuffer.h"

namespace attnscope {

/// The sides of a small picture at most, in pixels.
inline constexpr int kRecentWidth = 128, kRecentHeight = 80;

/// Keeps a picture of a capture, made small: as a PNG in the folder `recent-pictures` beside the
/// list of what was opened lately (recent_files.h), from which those of captures that left the list
/// are removed. False where it could not be written, or the list has not this capture. Never
/// throws.
bool keep_recent_picture(const std::filesystem::path& list, const std::filesystem::path& capture,
                         const gl::ReadPixels& picture) noexcept;

/// The picture that is kept of a capture; nothing where none can be read. Never throws.
std::optional<Canvas> recent_picture(const std::filesystem::path& list,
                                     const std::filesystem::path& capture) noexcept;

}  // namespace attnscope
