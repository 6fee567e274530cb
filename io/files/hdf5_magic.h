#pragma once

#include <string_view>

namespace attnscope {

/// How an HDF5 file begins (without a user block): HDF5 File Format Specification, superblock.
inline constexpr std::string_view kHdf5Magic("\x89HDF\r\n\x1a\n", 8);

}  // namespace attnscope
