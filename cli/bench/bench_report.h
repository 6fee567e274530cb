#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/stream/tile_backend.h"
#include "kernels/cpu/cpu_ceilings.h"

namespace attnscope {

/// One line of the table.
struct BenchResult {
  std::string name;
  double seconds = 0;
  double flops = 0;
  double entries = 0;
  double bytes = 0;
  double floor_seconds = 0;  ///< 0: not known
  int64_t memory_bytes = 0;
};

/// How fast a folder is written to, in bytes a second.
struct DiskCeilings {
  std::string folder;
  double buffered = 0;  ///< into the page cache
  double durable = 0;   ///< until fsync has returned
  double direct = 0;    ///< past the page cache; 0 where that is not possible
};

/// This machine's limits, measured in the same run.
struct Ceilings {
  CpuCeilings cpu;
  std::optional<DiskCeilings> disk;  ///< where something is written
};

/// The results and the backend they are of. `ceilings` is null where they do not apply to it.
struct BenchReport {
  const TileBackend& backend;
  const Ceilings* ceilings = nullptr;
  std::vector<BenchResult> results = {};
};

void print_bench_table(const BenchReport& report);
/// attnscope-bench/1.
void print_bench_json(const BenchReport& report);

}  // namespace attnscope
