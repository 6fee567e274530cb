#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "core/stream/tile_backend.h"
#include "io/export/write/chunk_writer.h"
#include "io/files/output_file.h"

namespace attnscope {

/// Where one head's LSEs and their checksum go.
struct LseTarget {
  int64_t base = 0;  ///< of the head's first row
  int64_t checksum_offset = 0;
  int64_t rows = 0;
};

/// Writes rows of LSEs as their panels come, in any order, and a head's checksum once its last row
/// is there. Holds 4 bytes a row of the heads that are not complete. With `apart`, other processes
/// write rows of the same heads: their checksums are found in the end (write_checksum).
/// Thread-safe.
class LseWriter {
 public:
  LseWriter(const OutputFile& file, WriteSmall small, bool apart)
      : file_(file), small_(std::move(small)), apart_(apart) {}

  /// Rows [first_row, first_row + norms.size()) of head `head` (any number that tells heads apart).
  /// Each row comes once. Returns the values as they were written. Throws what
  /// OutputFile::write_at throws.
  std::vector<float> write(int64_t head, const LseTarget& target, int64_t first_row,
                           std::span<const RowNorm> norms);
  /// Takes rows that an earlier run wrote from the file.
  void restore(int64_t head, const LseTarget& target, int64_t first_row, int64_t rows);
  /// The checksum of a head whose rows are all in the file, read back from there.
  void write_checksum(const LseTarget& target);

 private:
  /// Takes the values into account; writes the checksum after the head's last one.
  void add(int64_t head, const LseTarget& target, int64_t first_row, std::span<const float> values);
  void put_checksum(const LseTarget& target, std::span<const float> values);
  struct Pending {
    std::vector<float> values;
    int64_t missing = 0;
  };
  const OutputFile& file_;
  const WriteSmall small_;
  const bool apart_;
  std::mutex mutex_;
  std::map<int64_t, Pending> pending_;
};

}  // namespace attnscope
