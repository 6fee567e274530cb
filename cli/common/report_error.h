#pragma once

#include <exception>
#include <string_view>

#include "core/base/error.h"

namespace attnscope {

/// From now on a command that ends with an error, and has printed no JSON, says so on standard
/// output as well, as "attnscope-error/1": {"format", "kind", "message", "file", "place"}.
void report_errors_as_json();

/// Says the error that ends the command: a line on standard error and, where it was asked for, the
/// JSON. `kind` is an error_kind(), "verification" or "defect".
void report_error(std::string_view kind, std::string_view message, const Error::Place& place = {});
/// Of an exception of any kind, with its failure_text().
void report_error(const std::exception& failure);
/// The kind that report_error() says of it.
std::string_view failure_kind(const std::exception& failure);

}  // namespace attnscope
