#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "io/files/input_file.h"

namespace attnscope {

/// Reads a picture from beginning to end and hands it on in pieces. Throws Error(file) where it
/// does not begin as a PNG, JPEG, GIF or WebP file does, before anything is handed on, and where
/// it was changed meanwhile.
void read_picture(const InputFile& file, const std::function<void(std::span<const std::byte>)>& on);

}  // namespace attnscope
