#include "io/files/checksum.h"

#ifdef ATTNSCOPE_XXHASH_DISPATCH
// The same hash by the widest instructions of this machine: three times SSE2's speed.
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "core/base/error.h"
#include "io/files/posix_file.h"

namespace attnscope {
namespace {

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

}  // namespace

uint32_t checksum(std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(checksum64(bytes));
}

uint64_t checksum64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

uint64_t file_checksum(const std::filesystem::path& path, std::stop_token stop, int64_t* bytes) {
  const PosixFile file(path, PosixFile::Mode::read_only);
  const std::unique_ptr<XXH3_state_t, FreeState> state(XXH3_createState());
  if (!state) throw std::bad_alloc();
  XXH3_64bits_reset(state.get());
  constexpr int64_t kPiece = 1 << 20;
  std::vector<std::byte> buffer(kPiece);
  const int64_t size = file.size();
  for (int64_t at = 0; at < size; at += kPiece) {
    if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
    const std::span piece(buffer.data(), static_cast<size_t>(std::min(kPiece, size - at)));
    file.read_at(piece, at);
    XXH3_64bits_update(state.get(), piece.data(), piece.size());
  }
  if (bytes != nullptr) *bytes = size;
  return XXH3_64bits_digest(state.get());
}

}  // namespace attnscope
