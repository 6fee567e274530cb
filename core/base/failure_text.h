#pragma once

#include <exception>
#include <string>

namespace attnscope {

/// The one-line message for people about an exception of any kind: an Error's own message, the
/// system's reason where it refused something, and never a library's text about its own code.
std::string failure_text(const std::exception& failure);

}  // namespace attnscope
