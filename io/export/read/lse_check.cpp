#include "io/export/read/lse_check.h"

#include <algorithm>
#include <vector>

#include "io/files/checksum.h"

namespace attnscope {

bool lse_holds(const StoredGroup& group, int64_t head, const ReadPlace& read) {
  constexpr int64_t kPiece = 256 * 1024;
  const int64_t bytes = group.grid.rows * 4;
  std::vector<std::byte> buffer(static_cast<size_t>(std::min(kPiece, bytes)));
  RunningChecksum sum;
  for (int64_t at = 0; at < bytes; at += kPiece) {
    const std::span piece(buffer.data(), static_cast<size_t>(std::min(kPiece, bytes - at)));
    read(piece, group.places.lse + head * bytes + at);
    sum.add(piece);
  }
  uint32_t recorded = 0;
  read(std::as_writable_bytes(std::span(&recorded, 1)), group.places.lse_checksums + head * 4);
  return static_cast<uint32_t>(sum.digest()) == recorded;
}

}  // namespace attnscope
