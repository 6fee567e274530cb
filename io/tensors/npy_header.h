#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

/// The preamble of NumPy's format 1.0 for a C-ordered array of `descr` ("<f4", "|b1"), padded so
/// that the data starts on 64 bytes.
std::string npy_header(std::string_view descr, const std::vector<int64_t>& shape);

}  // namespace attnscope
