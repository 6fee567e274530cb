#pragma once

#include <vector>

#include "core/heads/head_arrays.h"
#include "core/problem/head_name.h"
#include "core/reduce/head_fields.h"

namespace attnscope {

/// Everything that is kept of one head: a plain value, which files are made of.
struct HeadRecord {
  HeadName name;
  HeadMetrics metrics;
  std::vector<HeadArrayValues> arrays;  ///< those that were asked for, in that order
};

/// By step, layer, batch item, kind, place, head and branch; where `by` is not null, by this number
/// first, the largest first and undefined ones last.
void sort_records(std::vector<HeadRecord>& records, const HeadField* by);

}  // namespace attnscope
