#include "io/hdf5/hdf5_signature.h"

#include <array>
#include <span>

#include "io/files/hdf5_magic.h"

namespace attnscope {
namespace {

constexpr int64_t kSmallestBlock = 512;

}  // namespace

bool begins_as_hdf5(std::string_view start) { return start.starts_with(kHdf5Magic); }

bool has_hdf5_userblock(const InputFile& file) {
  std::array<char, kHdf5Magic.size()> bytes{};
  const int64_t last = file.size() - static_cast<int64_t>(bytes.size());
  for (int64_t at = kSmallestBlock; at <= last; at *= 2) {
    file.read_at(at, std::as_writable_bytes(std::span(bytes)));
    if (std::string_view(bytes.data(), bytes.size()) == kHdf5Magic) return true;
    if (at > last / 2) break;
  }
  return false;
}

}  // namespace attnscope
