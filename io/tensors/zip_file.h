#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "io/files/byte_source.h"

namespace attnscope {

/// One member of a zip archive.
struct ZipMember {
  std::string name;
  int64_t data_offset = 0;   ///< of its stored bytes in the file
  int64_t stored_bytes = 0;  ///< as they stand there
  int64_t bytes = 0;         ///< unpacked
  uint32_t crc = 0;          ///< CRC-32 of the unpacked bytes
  bool deflated = false;
};

/// The directory of a zip archive, checked completely: every local header says what the directory
/// says, no two members overlap, names are plain relative paths that occur once, none is encrypted,
/// and none unpacks to more than deflate can pack. Zip64 is understood. Immutable; thread-safe.
/// Format: PKWARE's APPNOTE.TXT 6.3.
///
/// Not libzip's work: it tells no member's place in the file, so that tensors could not be read
/// where they stand; one of its handles serves one thread; and it looks neither for members that
/// overlap nor for those that unpack to more than they can hold (as of 1.7, Debian 12's).
class ZipFile {
 public:
  /// Throws Error(file) naming the member.
  explicit ZipFile(const std::filesystem::path& path);
  /// The archive of these bytes, wherever they stand; `name` is how messages call it.
  ZipFile(std::shared_ptr<const ByteSource> bytes, std::filesystem::path name);

  const std::filesystem::path& path() const { return path_; }
  /// Members that are no folders, in the directory's order.
  const std::vector<ZipMember>& members() const { return members_; }
  /// Null where there is none.
  const ZipMember* find(const std::string& name) const;
  /// The unpacked bytes of a member. Its checksum is checked by verify(), not before. A stored
  /// member is read where it stands. A deflated one is unpacked up to the place wanted, from the
  /// nearest of up to 32 states kept by verify() or from where the last reads ended: at most
  /// max(8 MiB, 1/32 of it) beyond what is wanted, and 3 MiB of memory, however large it is.
  std::shared_ptr<const ByteSource> open(const ZipMember& member) const;

 private:
  std::shared_ptr<const ByteSource> file_;
  std::filesystem::path path_;
  std::vector<ZipMember> members_;
};

/// The members' readers, by how they are stored (ZipFile::open chooses).
std::shared_ptr<const ByteSource> open_stored(std::shared_ptr<const ByteSource> file,
                                              const std::string& file_name,
                                              const ZipMember& member);
std::shared_ptr<const ByteSource> open_deflated(std::shared_ptr<const ByteSource> file,
                                                const std::string& file_name,
                                                const ZipMember& member);

/// Whether a file of this start is meant to be a zip archive.
bool looks_like_zip(std::string_view start);

}  // namespace attnscope
