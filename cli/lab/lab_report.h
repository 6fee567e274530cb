#pragma once

#include <string>

#include "core/patterns/mask_summary.h"
#include "core/problem/head_name.h"
#include "io/files/json_types.h"

namespace attnscope {

/// A line of the lab's table: a head's name, its edit, the numbers of lab_fields(), null where they
/// are undefined, and the errors of its segments.
OrderedJson lab_row(const HeadName& head, const std::string& edit, const MaskQuality& quality);
/// Throws nlohmann's exceptions where JSON is none.
void check_lab_row(const OrderedJson& json);
/// A table for people on standard output.
void print_lab_table(const OrderedJson& rows);

}  // namespace attnscope
