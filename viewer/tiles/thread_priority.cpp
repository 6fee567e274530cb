#include "viewer/tiles/thread_priority.h"

#ifdef __linux__
#include <sched.h>
#include <sys/resource.h>
#endif

namespace attnscope {

void lower_thread_priority() noexcept {
#ifdef __linux__
  // Linux takes "the calling process" for the calling thread (setpriority(2), "BUGS").
  constexpr int kBehindTheWindow = 10;
  (void)setpriority(PRIO_PROCESS, 0, kBehindTheWindow);
  // Of threads with a real-time priority (chrt) that one alone counts.
  const int policy = sched_getscheduler(0);
  sched_param own = {};
  if ((policy != SCHED_FIFO && policy != SCHED_RR) || sched_getparam(0, &own) != 0) return;
  if (own.sched_priority <= sched_get_priority_min(policy)) return;
  --own.sched_priority;
  (void)sched_setscheduler(0, policy, &own);
#endif
}

}  // namespace attnscope
