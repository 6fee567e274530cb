#pragma once

#include <span>
#include <string>
#include <string_view>

#include "io/files/json_types.h"

namespace attnscope {

/// A text as a field of a CSV line has it (RFC 4180): quoted where it holds a comma, a quote or a
/// line break.
std::string csv_text(std::string_view text);
/// A text, or a number with the digits that JSON gives it, or a list or object as JSON; null is
/// empty.
std::string csv_value(const OrderedJson& value);
/// A line of fields that are as csv_text() or csv_value() makes them, with its end, \r\n.
std::string csv_line(std::span<const std::string> fields);

}  // namespace attnscope
