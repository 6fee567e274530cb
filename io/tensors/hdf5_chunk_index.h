#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "io/files/input_file.h"
#include "io/tensors/chunk_packing.h"

namespace attnscope {

/// Where the filtered chunks of one HDF5 dataset of fixed extents stand, read from the file's own
/// index: one short read a chunk. The library's answers (H5Dget_chunk_info) walk over all chunks
/// before the one that is asked for, which is minutes for the tens of thousands of one call's maps.
///
/// Knows what the library writes for such datasets from 1.10 on, when it is told to: a single chunk
/// and the fixed array (HDF5 File Format Specification 3.0, IV.A.2.i and appendix C). Nothing of it
/// is believed: who reads a chunk checks its place and its content. Immutable; thread-safe.
class Hdf5ChunkIndex {
 public:
  /// `header` is the address of the dataset's object header, `chunks` how many its grid has;
  /// `where` names the dataset in messages. Throws Error(file) where there is no such index.
  Hdf5ChunkIndex(std::shared_ptr<const InputFile> file, std::string where, int64_t header,
                 int64_t chunks);

  /// Of the chunk with this number, row-major over the grid; nothing where it was left out. Throws
  /// Error(file).
  std::optional<ChunkPlace> place(int64_t number) const;

 private:
  [[noreturn]] void fail(const std::string& what) const;
  void read_fixed_array(int64_t address);
  /// Where entry `number` stands; −1: in a page that was never written.
  int64_t entry_address(int64_t number) const;

  std::shared_ptr<const InputFile> file_;
  std::string where_;
  int64_t chunks_;
  std::optional<ChunkPlace> single_;
  int64_t entry_bytes_ = 0;
  int64_t entries_ = -1;       ///< where they begin; −1: there are none, all chunks were left out
  int64_t page_entries_ = 0;   ///< 0: not in pages
  int64_t written_pages_ = 0;  ///< a bit each, from the highest of its byte on
};

}  // namespace attnscope
