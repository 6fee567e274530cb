#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace attnscope::test {

/// A zip member to be written, with what a malformed one may claim instead of the truth.
struct ZipPart {
  std::string name;
  std::string data;
  bool deflate = false;
  uint16_t flags = 0;
  int64_t claimed_bytes = -1;   ///< unpacked size in both headers
  int64_t claimed_crc = -1;     ///< checksum in both headers
  std::string local_name = {};  ///< another name in the local header
  int64_t claimed_offset = -1;  ///< place of the local header in the directory
  int method = -1;              ///< other than 0 and 8
};

inline std::string little_endian(uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i) {
    bytes += static_cast<char>(value & 0xff);
    value >>= 8;
  }
  return bytes;
}

inline std::string deflated(const std::string& data) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, data.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// The bytes of a zip archive of these members.
inline std::string zip_bytes(const std::vector<ZipPart>& parts) {
  std::string file, directory;
  for (const ZipPart& part : parts) {
    const std::string stored = part.deflate ? deflated(part.data) : part.data;
    const auto* raw = reinterpret_cast<const Bytef*>(part.data.data());
    const uint64_t crc = part.claimed_crc >= 0 ? static_cast<uint64_t>(part.claimed_crc)
                                               : crc32(0, raw, static_cast<uInt>(part.data.size()));
    const uint64_t bytes =
        part.claimed_bytes >= 0 ? static_cast<uint64_t>(part.claimed_bytes) : part.data.size();
    const int method = part.method >= 0 ? part.method : part.deflate ? 8 : 0;
    const uint64_t offset =
        part.claimed_offset >= 0 ? static_cast<uint64_t>(part.claimed_offset) : file.size();
    const auto common = [&](const std::string& name) {
      return little_endian(part.flags, 2) + little_endian(static_cast<uint64_t>(method), 2) +
             little_endian(0, 4) + little_endian(crc, 4) + little_endian(stored.size(), 4) +
             little_endian(bytes, 4) + little_endian(name.size(), 2) + little_endian(0, 2);
    };
    const std::string local = part.local_name.empty() ? part.name : part.local_name;
    file += "PK\x03\x04" + little_endian(20, 2) + common(local) + local + stored;
    directory += "PK\x01\x02" + little_endian(20, 2) + little_endian(20, 2) + common(part.name) +
                 little_endian(0, 10) + little_endian(offset, 4) + part.name;
  }
  const size_t begin = file.size();
  return file + directory + "PK\x05\x06" + little_endian(0, 4) + little_endian(parts.size(), 2) +
         little_endian(parts.size(), 2) + little_endian(directory.size(), 4) +
         little_endian(begin, 4) + little_endian(0, 2);
}

}  // namespace attnscope::test
