#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace attnscope {

/// Numbers of a written export.
struct ExportResult {
  std::string out;
  int64_t heads = 0;
  std::optional<int64_t> tiles{}, tiles_kept{};  ///< of a stream of tiles; kept of an earlier run
  int64_t bytes_written = 0;
  double seconds = 0;
  std::string capture_hash{};
};

/// "attnscope-export-result/1" on standard output.
void print_export_result(const ExportResult& result);

}  // namespace attnscope
