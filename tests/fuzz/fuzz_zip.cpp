#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "io/tensors/npz.h"
#include "io/tensors/torch_file.h"
#include "tests/fuzz/targets.h"

namespace {

/// Both ends of a member, whether or not its checksum is right.
void touch(const attnscope::ByteSource& member) {
  std::array<std::byte, 64> bytes;
  const int64_t count = std::min<int64_t>(member.size(), bytes.size());
  const std::span piece(bytes.data(), static_cast<size_t>(count));
  member.read_at(member.size() - count, piece);
  member.read_at(0, piece);
  member.verify();
}

}  // namespace

// A zip archive: its directory, its members, and what it holds as .npz or torch.save's file.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attnscope;
  try {
    ZipFile zip(test::fuzz_bytes(data, size), "input", {.memory = int64_t{64} << 20});
    for (const ZipMember& member : zip.members()) {
      try {
        touch(*zip.open(member));
      } catch (const Error&) {
      }
    }
    const bool torch = is_torch_zip(zip);
    test::touch(*(torch ? open_torch(std::move(zip)) : open_npz(std::move(zip))));
  } catch (const Error&) {
  }
  return 0;
}
