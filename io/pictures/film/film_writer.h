#pragma once

#include <filesystem>
#include <functional>

#include "io/pictures/canvas.h"

namespace attnscope {

/// True where there is ffmpeg in PATH.
bool can_write_mp4();
/// Throws Error(unavailable) where there is no ffmpeg in PATH: "FILE: an .mp4 needs ffmpeg …".
void check_mp4(const std::filesystem::path& path);

/// Writes a film of `count` images of one size, `fps` a second, through ffmpeg and PATH.part;
/// `draw` gives image i. An odd width or height gets a line more of the last pixel's colour, as
/// H.264 wants even ones. Throws as check_mp4(), Error(usage) where the images differ in size,
/// Error(file) with what ffmpeg says where it fails.
void write_mp4(int count, const std::function<Canvas(int)>& draw, int fps,
               const std::filesystem::path& path, bool force);

/// The images as DIR/frame-0000.png and so on. DIR must not exist, or be an empty folder; with
/// `force` a folder is replaced whose files are all such pictures. Appears when it is complete.
/// Throws Error(file).
void write_png_sequence(int count, const std::function<Canvas(int)>& draw,
                        const std::filesystem::path& folder, bool force);

}  // namespace attnscope
