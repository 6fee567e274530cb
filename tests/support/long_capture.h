#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "tests/support/tensor_files.h"
#include "tests/support/zip_bytes.h"

namespace attnscope::test {

/// Reads of so many bytes are reported (io/files/read_progress.h).
constexpr int64_t kReportedBytes = int64_t{64} << 20;

/// An .npz of q [1, 1, tokens, 4] and k, of which q is long enough to be reported and packs to
/// little. Its first value is served after all of it was read.
inline void write_long_capture(const std::filesystem::path& path) {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, ";
  const std::string q = npy_bytes(header + std::to_string(kReportedBytes / 16) + ", 4), }\n",
                                  std::string(static_cast<size_t>(kReportedBytes), '\0'));
  const std::string k = npy_bytes(header + "1, 4), }\n", std::string(16, '\0'));
  write_bytes(path, zip_bytes({{"q.npy", q, true}, {"k.npy", k}}));
}

/// Reads the first value of the first call's q.
inline float first_value(const TensorSource& q) {
  return read_values<float>(q, {0, 0, 0, 0}, {1, 1, 1, 1}).front();
}

}  // namespace attnscope::test
