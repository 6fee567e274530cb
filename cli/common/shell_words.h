#pragma once

#include <filesystem>
#include <string>

namespace attnscope {

/// `text` as one word of a POSIX shell.
std::string shell_word(const std::string& text);
/// The last part of a path that names something: what a page that is sent to others tells of it.
std::string file_name(const std::filesystem::path& path);

}  // namespace attnscope
