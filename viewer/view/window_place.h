#pragma once

namespace attnscope {

/// True where the window has the files of its machine. In a browser it opens and saves none; a
/// picture of it is a download.
#ifdef __EMSCRIPTEN__
inline constexpr bool kWindowHasFiles = false;
#else
inline constexpr bool kWindowHasFiles = true;
#endif

}  // namespace attnscope
