#pragma once

#include <span>
#include <string_view>

namespace attnscope {

/// The parts of the page that are the same in all figures, as the program has them in it.
std::span<const unsigned char> figure_style();
/// The page's script, of all the files that web/CMakeLists.txt tells.
std::span<const unsigned char> figure_script();
/// The engine as a WebAssembly module (web/engine).
std::span<const unsigned char> figure_engine();
/// The script's SHA-256 in base64, by which the page allows it and no other.
std::string_view figure_script_digest();

}  // namespace attnscope
