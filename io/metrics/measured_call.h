#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/heads/head_record.h"
#include "core/patterns/mask_summary.h"
#include "core/products/pooled_map.h"
#include "io/capture/call/call_entry.h"
#include "io/metrics/run_table.h"

namespace attnscope {

/// Numbers of one call and branch: each list has an item a head, [batch, head].
struct MeasuredCall {
  const CallEntry* call = nullptr;
  std::string branch, backend;
  std::vector<int64_t> batch, heads;  ///< of the call's tensors, ascending
  std::vector<HeadRecord> records;    ///< empty where stats were not asked for
  struct Blocks {
    int64_t side = 0;
    std::vector<PooledMap> maps;
  };
  std::vector<Blocks> pooled;
  std::vector<std::string> masks;                      ///< their words
  std::vector<std::vector<MaskQuality>> mask_quality;  ///< [head][mask]
};

/// The measured call as the group of a table of one run. Its heads are the model's: the call's
/// head_offset counts in.
MetricGroup group_of_measured(const MeasuredCall& measured);

}  // namespace attnscope
