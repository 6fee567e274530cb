#pragma once

#include "core/heads/class_table.h"

namespace attnscope {

/// The classes of heads over steps and branches, on standard output, with a star where a head has
/// several, and how many changed along the steps; `changing`: those heads alone. Nothing of a table
/// without several columns.
void print_class_table(const ClassTable& table, bool changing);

}  // namespace attnscope
