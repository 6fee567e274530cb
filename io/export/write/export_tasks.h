#pragma once

#include <vector>

#include "core/stream/tile_sink.h"
#include "io/export/format/export_layout.h"

namespace attnscope {

/// The stream that fills an export: one task a head, in the order of groups, batch items and heads.
/// The tasks borrow the layout's lists.
std::vector<HeadTask> make_export_tasks(const ExportLayout& layout);

}  // namespace attnscope
