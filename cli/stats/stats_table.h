#pragma once

#include <span>

#include "core/heads/head_record.h"

namespace attnscope {

/// The records as a table for people, on standard output: the fields that have a heading.
void print_stats_table(std::span<const HeadRecord> records);

}  // namespace attnscope
