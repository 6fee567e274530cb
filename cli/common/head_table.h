#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/problem/head_name.h"
#include "io/pictures/table_layout.h"

namespace attnscope {

/// "step 10 layer 2 cond joint batch 0 head 3", one printable line.
std::string head_label(const HeadName& head);

/// Heads in a table: a row for each call and batch item, in the order of their first heads, a
/// column for each head's number, ascending.
struct HeadTable {
  TableNames names;            ///< rows are named by the layer, and by what else differs
  std::vector<size_t> places;  ///< of each head, row-major
};
HeadTable table_of_heads(const std::vector<HeadName>& heads);

}  // namespace attnscope
