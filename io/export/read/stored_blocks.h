#pragma once

#include <filesystem>
#include <vector>

#include "core/base/index_range.h"
#include "core/products/pooled_map.h"
#include "io/export/format/export_manifest.h"
#include "io/export/read/stored_facts.h"
#include "io/files/posix_file.h"

namespace attnscope {

struct HelperQuestion;

/// One group of a pooled export.
struct StoredBlockGroup {
  StoredFacts facts;  ///< its `queries` are empty: see `rows`
  std::vector<int64_t> batch, heads;
  IndexRange rows, cols;  ///< tokens that were pooled; facts.keys is `cols`
  int64_t block = 0;      ///< tokens along a block's side; of a pyramid, of its finest level
  int64_t block_rows = 0, block_cols = 0;
  int64_t max_place = 0, mean_place = 0;  ///< in the file

  int64_t num_heads() const { return static_cast<int64_t>(batch.size() * heads.size()); }
};

/// The maps of a pooled export: largest and mean weight of each block. The HDF5 library reads the
/// structure only, in the helper process; numbers are read with our own pread, and the whole file
/// is held against its checksum when it is opened. Immutable; thread-safe.
class StoredBlocks {
 public:
  /// Throws Error(file) where the file is damaged or not complete, Error(usage) where it is an
  /// export of another product.
  explicit StoredBlocks(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const ExportManifest& stored() const { return stored_; }
  const std::vector<StoredBlockGroup>& groups() const { return groups_; }

  /// The blocks of these rows and columns of blocks; `head` counts batch items and heads of the
  /// group. Throws Error(file).
  PooledMap read(const StoredBlockGroup& group, int64_t head, IndexRange block_rows,
                 IndexRange block_cols) const;

  /// Maxima and means of blocks of `block` tokens, a multiple of the group's, over rows and columns
  /// of tokens that begin with one of its blocks; entries are weighted alike. Holds one row of the
  /// file's blocks.
  PooledMap pooled(const StoredBlockGroup& group, int64_t head, IndexRange rows, IndexRange cols,
                   int64_t block) const;

 private:
  void read_numbers(int64_t place, const StoredBlockGroup& group, int64_t head, IndexRange rows,
                    IndexRange cols, std::vector<float>& numbers) const;

  const std::filesystem::path path_;
  const ExportManifest stored_;
  std::vector<StoredBlockGroup> groups_;
  PosixFile file_;
};

/// The question that StoredBlocks asks the helper process (io/helper): the blocks of the calls.
extern const HelperQuestion kBlocksQuestion;

}  // namespace attnscope
