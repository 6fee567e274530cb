#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "core/base/index_range.h"
#include "io/export/read/stored_call.h"
#include "viewer/tiles/texels/texel_row.h"
#include "viewer/view/maps/map_source.h"
#include "viewer/view/maps/map_tile.h"

namespace attnscope {

class StoredBlocks;
class StoredMaps;

/// Reads the maps of an export, as texels and as entries. Rows and columns are places in the whole
/// sequences; entries that are not in the file are left out. All members are thread-safe and throw
/// Error(file) where the file is not what was written.
class TexelReader {
 public:
  virtual ~TexelReader() = default;

  virtual const std::vector<MapSource>& calls() const = 0;
  /// Rows that are best read together; a call of add() holds `buffer_bytes` then.
  virtual int64_t panel_rows(const HeadId& head) const = 0;
  virtual int64_t buffer_bytes(const HeadId& head) const = 0;

  /// Adds the entries of rows × cols to texels of side × side entries: texels[r][c] begins at row
  /// rows.begin + r·side and column cols.begin + c·side, of which both must be multiples of side.
  /// The texels must count their entries (TexelRow of logits); those of blocks count a block's
  /// entries with its mean.
  virtual void add(const HeadId& head, IndexRange rows, IndexRange cols, int64_t side,
                   std::span<TexelRow> texels) const = 0;
  /// The entries of rows × cols, row after row; NaN where they are not in the file. Only where
  /// MapSource::block is 1.
  virtual void entries(const HeadId& head, IndexRange rows, IndexRange cols,
                       std::span<float> out) const = 0;
  /// True where anything of rows × cols is in the file.
  virtual bool holds(const HeadId& head, IndexRange rows, IndexRange cols) const = 0;

  /// NaN where it is not in the file.
  virtual ProbedEntry probe(const HeadId& head, int64_t query, int64_t key) const = 0;
};

/// Exports of weights, rows and logits.
std::unique_ptr<TexelReader> read_texels(std::shared_ptr<const StoredMaps> maps);
/// Pooled exports.
std::unique_ptr<TexelReader> read_texels(std::shared_ptr<const StoredBlocks> blocks);
/// Any export with maps, by its product. Throws Error(usage) where it has none, Error(file) where
/// it is damaged.
std::unique_ptr<TexelReader> read_export_texels(const std::filesystem::path& path);
/// Two exports as one: the calls of the second stand behind those of the first. Holds both.
std::unique_ptr<TexelReader> join_texels(std::shared_ptr<const TexelReader> first,
                                         std::shared_ptr<const TexelReader> second);

/// A call as an export describes it; its name and the extent of its maps are left to fill in.
MapSource exported_call(const StoredFacts& facts, const std::vector<int64_t>& batch,
                        const std::vector<int64_t>& heads);

}  // namespace attnscope
