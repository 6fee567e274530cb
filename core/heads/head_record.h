#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/base/number_order.h"
#include "core/heads/class_table.h"
#include "core/heads/head_arrays.h"
#include "core/problem/head_name.h"
#include "core/reduce/head_fields.h"

namespace attnscope {

/// A head whose map looks like another's.
struct NearHead {
  HeadName name;
  double js = 0;  ///< Jensen–Shannon divergence of their pooled rows, in bits
};

/// Everything that is kept of one head: a plain value, which files are made of.
struct HeadRecord {
  HeadName name;
  HeadMetrics metrics;
  std::vector<HeadArrayValues> arrays;  ///< those that were asked for, in that order
  std::vector<NearHead> nearest = {};   ///< the nearest first; journals and parts have none
};

/// The order of heads: by step, layer, batch item, kind, place, head and branch; where `by` is not
/// null, by this number first, undefined ones last.
struct HeadOrder {
  const HeadField* by = nullptr;
  NumberOrder order = {};

  /// Reads what NumberOrder does, of the numbers of heads. Throws Error(usage).
  static HeadOrder parse(std::string_view sort);
};

/// The classes of the records' heads, which differ.
ClassTable class_table(std::span<const HeadRecord> records);

void sort_records(std::vector<HeadRecord>& records, const HeadOrder& order = {});

}  // namespace attnscope
