#pragma once

#include <string>

#include "io/export/format/group_description.h"

namespace attnscope {

struct ExportGroup;

/// Describes a group by an open capture's call (`group.call`), or by what the part that it comes
/// from has recorded.
CallDescription describe_call(const ExportGroup& group, const std::string& backend);
GroupDescription describe_group(const ExportGroup& group);

}  // namespace attnscope
