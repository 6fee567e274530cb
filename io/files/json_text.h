#pragma once

#include <string>

#include "io/files/json_types.h"

namespace attnscope {

/// `json` as a text that is printed or stands in a file of its own: `indent` blanks a level, -1:
/// one line. Control characters are escaped, so that a terminal shows what it is, and bytes that
/// are no UTF-8 (file names may hold any) replaced.
std::string json_text(const OrderedJson& json, int indent = -1);

}  // namespace attnscope
