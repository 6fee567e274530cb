#pragma once

#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace attnscope {

/// Throws Error(usage) "OPTION FILE: the name must end in .csv or .json (got ".txt")" where an
/// output's name ends in none of these; `-`, standard output, is told so.
void require_ending(const std::filesystem::path& file, std::span<const std::string_view> endings,
                    std::string_view option = "-o");
void require_ending(const std::filesystem::path& file,
                    std::initializer_list<std::string_view> endings,
                    std::string_view option = "-o");

// Names that need no ending: what says that another format is in the file is Error(usage) "-o FILE:
// …", which names the right one.

/// Of an export of maps, or the whole of its parts.
void check_export_name(const std::filesystem::path& file);
/// Of a capture.
void check_capture_name(const std::filesystem::path& file);

}  // namespace attnscope
