#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "io/files/byte_source.h"
#include "io/files/head_memory.h"
#include "io/tensors/zip_member.h"

namespace attnscope {

/// The directory of a zip archive, checked completely: every local header says what the directory
/// says, no two members overlap, names are plain relative paths that occur once, none is encrypted,
/// and none unpacks to more than deflate can pack. Zip64 is understood. How many members there may
/// be is a matter of the memory that the control allows for the file's head. Immutable;
/// thread-safe. Format: PKWARE's APPNOTE.TXT 6.3.
///
/// Not libzip's work: it tells no member's place in the file, so that tensors could not be read
/// where they stand; one of its handles serves one thread; and it looks neither for members that
/// overlap nor for those that unpack to more than they can hold (as of 1.7, Debian 12's).
class ZipFile {
 public:
  /// The archive of these bytes, wherever they stand; `name` is how messages call it. Throws
  /// Error(file) naming the member, Error(resource) where the directory takes too much memory.
  ZipFile(std::shared_ptr<const ByteSource> bytes, std::filesystem::path name,
          ReadControl control = {});

  const std::filesystem::path& path() const { return path_; }
  /// Members that are no folders, in the directory's order.
  const std::vector<ZipMember>& members() const { return members_; }
  /// Null where there is none.
  const ZipMember* find(const std::string& name) const;
  /// The memory that is left for the file's head: for a member (a pickle) that tells of others.
  const HeadMemory& head_memory() const { return head_memory_; }
  /// The control that the archive was opened with.
  const ReadControl& control() const { return control_; }
  /// As open_zip_member, with this control.
  std::shared_ptr<const ByteSource> open(const ZipMember& member) const;

 private:
  std::shared_ptr<const ByteSource> file_;
  std::filesystem::path path_;
  ReadControl control_;
  std::shared_ptr<ChunkCache> unpacked_;
  HeadMemory head_memory_;
  std::vector<ZipMember> members_;
  std::vector<size_t> by_name_;  ///< places in members_, ascending by name
};

/// True where a file of this start is meant to be a zip archive.
bool looks_like_zip(std::string_view start);

}  // namespace attnscope
