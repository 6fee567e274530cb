#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/pictures/table_layout.h"

namespace attnscope {

/// What names a head of a capture or of an export.
struct HeadName {
  int64_t step = 0, layer = 0;
  std::string branch, kind;
  int64_t batch = 0, head = 0;
};

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
