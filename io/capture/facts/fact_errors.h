#pragma once

#include <string>

#include "core/base/error.h"
#include "core/tensor/tensor_source.h"
#include "io/capture/facts/call_facts.h"

namespace attnscope {

/// The error for a fact that cannot be: Error(file) naming the call where a file recorded it,
/// Error(usage) naming `option` (by default --FACT), or --as, where it came from elsewhere.
Error bad_fact(const CallFacts& facts, const std::string& fact, const std::string& what,
               const std::string& option = "");

/// The error for a tensor that cannot be what it was given for: of code `file` where it was
/// recorded, `usage` where an option names it.
Error wrong_tensor(const TensorSource& tensor, ErrorCode code, const std::string& what);

/// Returns what `make` returns. Puts `name` before the message of what it throws, where the message
/// does not begin with it, and gives usage errors `code`: what is wrong may be recorded.
template <typename Make>
auto with_name(const std::string& name, ErrorCode code, const Make& make) {
  try {
    return make();
  } catch (const Error& e) {
    const std::string message = e.what();
    const bool named = message.rfind(name, 0) == 0;
    const bool usage = e.code() == ErrorCode::usage;
    const bool is_placed = !e.place().file.empty() || (usage && code == ErrorCode::usage);
    throw Error(usage ? code : e.code(), named ? message : name + ": " + message,
                is_placed ? e.place() : Error::Place{name, ""});
  }
}

}  // namespace attnscope
