#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace attnscope {

/// What a child process may take.
struct ChildLimits {
  std::chrono::seconds time{10};
  int64_t memory_bytes = int64_t{1} << 30;  ///< of address space beyond the parent's; not enforced
                                            ///< under sanitizers
};

/// Runs `work` in a child process and returns its result, so that a crash or a hang in it is an
/// error here. The child has this process's memory as it is now, and changes nothing of it; it must
/// not start threads. It has none of this process's files but the standard ones, and ends with the
/// thread that calls this, also where that is killed. What `work` throws becomes an Error of the
/// same code and message; a child that dies or takes too long an Error(file) "NAME: WHAT". Call it
/// from one thread while no other thread is in a library that `work` uses.
std::string run_in_child(const std::string& name, const std::function<std::string()>& work,
                         const ChildLimits& limits = {});

}  // namespace attnscope
