#pragma once

#include <span>
#include <string_view>

namespace attnscope {

/// The parts of the page that are the same in all figures, as the program has them in it.
std::span<const unsigned char> figure_style();
/// The page's script: what its worker runs, then what it runs itself.
std::span<const unsigned char> figure_worker();
std::span<const unsigned char> figure_script();
/// The engine as a WebAssembly module (web/engine); empty in a build without it.
std::span<const unsigned char> figure_engine();
/// The SHA-256 of both, one after the other, in base64, by which the page allows them and no other.
std::string_view figure_script_digest();

}  // namespace attnscope
