#include "viewer/tiles/thread_priority.h"

#ifdef __linux__
#include <sys/resource.h>
#endif

namespace attnscope {

void lower_thread_priority() noexcept {
#ifdef __linux__
  // Linux takes "the calling process" for the calling thread (setpriority(2), "BUGS").
  constexpr int kBehindTheWindow = 10;
  (void)setpriority(PRIO_PROCESS, 0, kBehindTheWindow);
#endif
}

}  // namespace attnscope
