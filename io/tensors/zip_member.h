#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "io/files/byte_source.h"
#include "io/files/read_progress.h"
#include "io/tensors/chunk_cache.h"

namespace attnscope {

/// One member of a zip archive.
struct ZipMember {
  std::string name;
  int64_t data_offset = 0;   ///< of its stored bytes in the file
  int64_t stored_bytes = 0;  ///< as they stand there
  int64_t bytes = 0;         ///< unpacked
  uint32_t crc = 0;          ///< CRC-32 of the unpacked bytes
  bool has_crc = true;       ///< false: its writer computed none, and `crc` says nothing
  bool deflated = false;
};

/// The unpacked bytes of a member. Its checksum, if it has one, is checked by verify(), not before.
/// A stored member is read where it stands. A deflated one is unpacked up to the place wanted, from
/// the nearest of up to 32 states kept by verify() or from where the last reads ended: at most
/// max(8 MiB, 1/32 of it) beyond what is wanted, and 3 MiB of memory, however large it is; what was
/// unpacked last stays in `unpacked`, which the archive's members share. Whatever it reads before
/// what is wanted heeds `control`. `file_name` is how messages call the archive.
std::shared_ptr<const ByteSource> open_zip_member(std::shared_ptr<const ByteSource> file,
                                                  const std::string& file_name,
                                                  const ZipMember& member,
                                                  std::shared_ptr<ChunkCache> unpacked,
                                                  const ReadControl& control);

}  // namespace attnscope
