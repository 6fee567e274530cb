#pragma once

#include <span>
#include <string_view>

namespace attnscope {

/// The parts of the page that are the same in all reports, as the program has them in it.
std::span<const unsigned char> report_style();
/// The page's script, of all the files that web/CMakeLists.txt tells.
std::span<const unsigned char> report_script();
/// The script's SHA-256 in base64, by which the page allows it.
std::string_view report_script_digest();

}  // namespace attnscope
