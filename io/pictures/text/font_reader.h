#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace attnscope {

/// Numbers of a font file, big-endian. What lies outside is 0: a broken font gives broken letters.
/// Borrows the bytes.
class FontReader {
 public:
  explicit FontReader(std::span<const unsigned char> bytes) : bytes_(bytes) {}
  size_t size() const { return bytes_.size(); }
  int u8(size_t at) const { return at < bytes_.size() ? bytes_[at] : 0; }
  int u16(size_t at) const { return u8(at) << 8 | u8(at + 1); }
  int i16(size_t at) const { return static_cast<int16_t>(u16(at)); }
  uint32_t u32(size_t at) const {
    return static_cast<uint32_t>(u16(at)) << 16 | static_cast<uint32_t>(u16(at + 2));
  }
  /// True where the four bytes from there on are these letters.
  bool is(size_t at, std::string_view tag) const {
    for (size_t c = 0; c < 4; ++c) {
      if (u8(at + c) != tag[c]) return false;
    }
    return true;
  }
  /// What of these bytes lies within.
  FontReader part(size_t begin, size_t length) const {
    begin = std::min(begin, bytes_.size());
    return FontReader(bytes_.subspan(begin, std::min(length, bytes_.size() - begin)));
  }
  /// The table of that name, empty where there is none, in a file whose table of tables begins at
  /// `start`.
  FontReader table(size_t start, std::string_view tag) const {
    const int count = u16(start + 4);
    for (int i = 0; i < count; ++i) {
      const size_t at = start + 12 + 16 * static_cast<size_t>(i);
      if (is(at, tag)) return part(u32(at + 8), u32(at + 12));
    }
    return FontReader({});
  }
  /// Where glyph `glyph` begins in glyf, by the table loca.
  size_t place_of(int glyph, bool long_offsets) const {
    const auto at = static_cast<size_t>(glyph);
    return long_offsets ? u32(4 * at) : 2 * static_cast<size_t>(u16(2 * at));
  }
  std::vector<uint8_t> copy() const { return {bytes_.begin(), bytes_.end()}; }

 private:
  std::span<const unsigned char> bytes_;
};

}  // namespace attnscope
