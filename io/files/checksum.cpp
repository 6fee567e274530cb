#include "io/files/checksum.h"

#ifdef ATTNSCOPE_XXHASH_DISPATCH
// XXH3 by the widest instructions of this machine: the same hash at three times SSE2's speed.
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include <algorithm>
#include <new>
#include <vector>

#include "core/base/error.h"
#include "io/files/posix_file.h"

namespace attnscope {
uint32_t checksum(std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(checksum64(bytes));
}

uint64_t checksum64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

RunningChecksum::RunningChecksum() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_.get()));
}

void RunningChecksum::Free::operator()(void* state) const {
  XXH3_freeState(static_cast<XXH3_state_t*>(state));
}

void RunningChecksum::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state_.get()), bytes.data(), bytes.size());
}

uint64_t RunningChecksum::digest() const {
  return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_.get()));
}

uint64_t file_checksum(const std::filesystem::path& path, std::stop_token stop, int64_t* bytes) {
  const PosixFile file(path, PosixFile::Mode::read_only);
  RunningChecksum sum;
  constexpr int64_t kPiece = 1 << 20;
  std::vector<std::byte> buffer(kPiece);
  const int64_t size = file.size();
  for (int64_t at = 0; at < size; at += kPiece) {
    if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
    const std::span piece(buffer.data(), static_cast<size_t>(std::min(kPiece, size - at)));
    file.read_at(piece, at);
    sum.add(piece);
  }
  if (bytes != nullptr) *bytes = size;
  return sum.digest();
}

}  // namespace attnscope
