#pragma once

#include <string_view>
#include <vector>

#include "core/base/number_order.h"
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

/// The order of heads: by step, layer, batch item, kind, place, head and branch; where `by` is not
/// null, by this number first, undefined ones last.
struct HeadOrder {
  const HeadField* by = nullptr;
  NumberOrder order = {};

  /// Reads what NumberOrder does, of the numbers of heads. Throws Error(usage).
  static HeadOrder parse(std::string_view sort);
};

void sort_records(std::vector<HeadRecord>& records, const HeadOrder& order = {});

}  // namespace attnscope
