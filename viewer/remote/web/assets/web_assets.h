#pragma once

#include <span>
#include <string_view>

namespace attnscope {

/// One file of the page that shows the window in a browser.
struct WebAsset {
  std::string_view path;  ///< as browsers ask for it: "/", "/window.wasm"
  std::string_view type;  ///< its media type
  std::span<const unsigned char> gzipped;
};

/// The whole page, which is part of the program; empty in a build without it. Lives as long as the
/// program. Thread-safe.
std::span<const WebAsset> web_assets();

}  // namespace attnscope
