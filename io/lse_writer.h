#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "core/tile_backend.h"
#include "io/export_file.h"

namespace attnscope {

/// Where one head's LSEs and their checksum go.
struct LseTarget {
  int64_t base = 0;  ///< of the head's first row
  int64_t checksum_offset = 0;
  int64_t rows = 0;
};

/// Writes rows of LSEs as their panels come, in any order, and a head's checksum once its last row
/// is there. Holds 4 bytes a row of the heads that are not complete. Thread-safe.
class LseWriter {
 public:
  explicit LseWriter(const ExportFile& file) : file_(file) {}

  /// Rows [first_row, first_row + norms.size()) of head `head` (any number that tells heads apart).
  /// Throws what ExportFile::write_at throws.
  void write(int64_t head, const LseTarget& target, int64_t first_row,
             std::span<const RowNorm> norms);

 private:
  struct Pending {
    std::vector<float> values;
    int64_t missing = 0;
  };
  const ExportFile& file_;
  std::mutex mutex_;
  std::map<int64_t, Pending> pending_;
};

}  // namespace attnscope
