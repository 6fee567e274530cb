#pragma once

#include <functional>
#include <future>
#include <utility>

namespace attnscope {

/// Does a piece of work beside the window's thread; what it throws comes out of the future. In a
/// browser, where the window has one thread, it is done at once.
template <class Work>
auto aside(Work work) {
#ifdef __EMSCRIPTEN__
  std::packaged_task<decltype(work())()> task(std::move(work));
  auto result = task.get_future();
  task();
  return result;
#else
  return std::async(std::launch::async, std::move(work));
#endif
}

}  // namespace attnscope
