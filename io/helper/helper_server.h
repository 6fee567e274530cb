#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "io/helper/helper_question.h"

namespace attnscope {

/// Address space that a helper may take for its answers, beyond what it begins with.
constexpr int64_t kHelperMemoryBytes = int64_t{1} << 30;

/// True where sanitizers watch this build. They reserve terabytes of address space, so that none
/// can be denied, and a helper keeps the standard error that they report to.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHelperIsSanitized = true;
#else
constexpr bool kHelperIsSanitized = false;
#endif

/// The word with which the program `attnscope`, alone on its command line, is such a process; not
/// for users.
inline constexpr std::string_view kHelperWord = "--helper-process";

/// Does the whole work of a helper process: answers these questions, one after the other, to the
/// process at the other end of its standard input, and ends the moment that process does. It has no
/// files but the standard ones and leaves no core. To be called by main, once, before anything has
/// been opened or started; returns the exit code. Throws Error(usage) where standard input is no
/// socket: a helper is started by set_helper_program's process alone.
int serve_helper(std::span<const HelperQuestion* const> questions);

}  // namespace attnscope
