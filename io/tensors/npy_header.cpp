#include "io/tensors/npy_header.h"

#include <fmt/core.h>

namespace attnscope {

std::string npy_header(std::string_view descr, const std::vector<int64_t>& shape) {
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (", descr);
  for (int64_t extent : shape) dict += fmt::format("{}, ", extent);
  dict += "), }";
  constexpr size_t kPreamble = 10;
  const size_t total = (kPreamble + dict.size() + 1 + 63) / 64 * 64;
  dict.append(total - kPreamble - dict.size() - 1, ' ');
  dict += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

}  // namespace attnscope
