#pragma once

namespace attnscope {

/// Lets the threads that answer hands and eyes run before the calling one, where the system knows
/// priorities of threads (Linux); elsewhere, or where that is not allowed, nothing changes.
void lower_thread_priority() noexcept;

}  // namespace attnscope
