#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace attnscope {

/// Appends a thread that runs `work` to `threads`, of which `wanted` are to be started in all.
/// Throws Error(resource) with both numbers where the system starts no more; those that were
/// started stay.
template <typename Work>
void start_thread(std::vector<std::jthread>& threads, size_t wanted, Work&& work) {
  try {
    threads.emplace_back(std::forward<Work>(work));
  } catch (const std::system_error&) {
    throw Error(ErrorCode::resource, "the system started " + std::to_string(threads.size()) +
                                         " of " + std::to_string(wanted) +
                                         " threads and no more (ulimit -u): give fewer --threads");
  }
}

/// Appends `wanted` threads to `threads`, or as many as the system starts: for work that is done
/// with fewer, too. `make_work` gives what each runs, by its number from 0.
template <typename MakeWork>
void start_helpers(std::vector<std::jthread>& threads, size_t wanted, const MakeWork& make_work) {
  try {
    for (size_t helper = 0; helper < wanted; ++helper) threads.emplace_back(make_work(helper));
  } catch (const std::system_error&) {
    // Those that there are do it all.
  }
}

}  // namespace attnscope
