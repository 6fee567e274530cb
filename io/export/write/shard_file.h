#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "io/export/format/export_layout.h"
#include "io/export/write/export_coordinates.h"
#include "io/export/write/prepared_tile.h"
#include "io/hdf5/hdf5_writer.h"

namespace attnscope {

/// One group of a sharded export, as an export file of its own: /calls/NAME with the same
/// attributes and coordinates. Tiles come in the order of heads, rows and keys, so that the same
/// export gives the same bytes. To be made, used and destroyed within an Hdf5Session; not
/// thread-safe.
class ShardFile {
 public:
  /// Creates the file, which must not exist. Borrows the spec, layout and group. Throws
  /// Error(file).
  ShardFile(const ExportSpec& spec, const ExportLayout& layout, const ExportGroup& group,
            const std::filesystem::path& path);
  ShardFile(const ShardFile&) = delete;
  ShardFile& operator=(const ShardFile&) = delete;

  /// Returns the bytes of data written. Throws Error(file).
  int64_t write(const PreparedTile& tile);
  /// Writes what comes last and closes the file; it is not synced.
  void close();

 private:
  int64_t num_heads() const { return static_cast<int64_t>(group_.heads.size()); }
  int64_t num_items() const { return static_cast<int64_t>(group_.batch.size()); }
  void create_entries();
  int64_t write_entries(const PreparedTile& tile);
  void write_sums(const Hdf5Group& sums, const std::string& name, std::span<const uint32_t> values,
                  std::span<const int64_t> shape, std::span<const Hdf5Dataset* const> axes);
  void finish_entries();
  void create_topk();
  int64_t write_topk(const PreparedTile& tile);
  void begin_head(int64_t head);
  void finish_head();
  int64_t write_kept(const PreparedTile& tile);

  const ExportSpec& spec_;
  const ExportLayout& layout_;
  const ExportGroup& group_;
  Hdf5Writer writer_;
  Hdf5Group parent_, head_group_;
  ExportScales scales_;
  Hdf5Dataset entries_, keys_, mass_;
  std::vector<std::string> lists_;  ///< of the heads; empty unless threshold
  std::vector<uint32_t> checksums_;
  std::vector<float> lse_, kept_;
  std::vector<int64_t> starts_;
};

}  // namespace attnscope
