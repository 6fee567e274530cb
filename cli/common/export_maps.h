#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/common/head_table.h"
#include "core/problem/token_grid.h"
#include "io/export/read/stored_maps.h"

namespace attnscope {

/// A head whose map an export holds, and where it stands in its sequences.
struct ExportedMap {
  HeadName name;
  std::string model, score, mask, q_state;
  TokenGrid queries, keys;
  IndexRange rows, cols;    ///< what was exported
  int64_t single_rows = 0;  ///< more than 0: so many rows that are no neighbours
};

/// The maps of an export as pictures take them: in blocks. Rows and columns are places in the
/// sequences.
class ExportMaps {
 public:
  virtual ~ExportMaps() = default;
  virtual const std::vector<ExportedMap>& heads() const = 0;
  /// Tokens along the smallest block: 1, or what the export was pooled with.
  virtual int64_t unit() const = 0;
  virtual bool is_logits() const = 0;
  virtual std::string dtype_name() const = 0;
  virtual const ExportManifest& stored() const = 0;
  /// The bytes that pooled() holds at most beside its result.
  virtual int64_t buffer_bytes() const = 0;
  /// Of heads()[head]. `block` is a multiple of unit(); rows and cols lie within what was exported
  /// and begin with a smallest block. Throws Error(file).
  virtual StoredPooledMap pooled(size_t head, IndexRange rows, IndexRange cols,
                                 int64_t block) const = 0;
};

/// Throws Error(usage) where the export has no maps, Error(file) where it is damaged.
std::unique_ptr<ExportMaps> open_export_maps(const std::filesystem::path& path);

}  // namespace attnscope
