#pragma once

#include <exception>
#include <string>

namespace attnscope {

/// What an exception of any kind is told people as, in one line: an Error's own message, the
/// system's reason where it refused something, and never a library's text about its own code.
std::string failure_text(const std::exception& failure);

}  // namespace attnscope
