#pragma once

#include <cstdint>
#include <string>

namespace attnscope {

/// How the disk is written to.
enum class WriteWay : uint8_t {
  buffered,  ///< into the page cache
  durable,   ///< until fsync has returned
  direct,    ///< past the page cache, and durable
};

/// Bytes a second of pwrite into a file in `folder`, in pieces as large as an export's, the best of
/// three; 0 where the file system cannot write so. Throws Error(file).
double write_speed(const std::string& folder, WriteWay way);

}  // namespace attnscope
