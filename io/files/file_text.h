#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

namespace attnscope {

/// All bytes of a regular file, once it is known to be one: a pipe is never waited for. Throws
/// Error(file) where it cannot be read, is something else ("is no regular file"), or has more than
/// `most` bytes ("is too long for WHAT").
std::string read_file_text(const std::filesystem::path& file, const char* what = "",
                           int64_t most = std::numeric_limits<int64_t>::max());

/// The first bytes of a regular file, `most` of them where it has as many; empty where it is no
/// regular file or cannot be read.
std::string beginning_of_file(const std::filesystem::path& file, size_t most);

}  // namespace attnscope
