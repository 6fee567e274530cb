#pragma once

#include <cstdint>
#include <string>

namespace attnscope {

/// Which part of a head a page is to have, and what whoever asks calls these options.
struct FigureChoice {
  std::string rows, cols;  ///< "A:B"; empty: all
  int64_t stride = 1;
  int64_t base_texels = 640;  ///< on a side of the map's base, at most
  bool in_python = false;

  /// An option as messages name it: "--rows A:B", "rows=\"A:B\"".
  std::string option(const std::string& name, const std::string& value) const;
};

}  // namespace attnscope
