#include "cli/query/query_evictions.h"

#include "io/capture/evictions.h"

namespace attnscope {
namespace {

/// The cells of the task's video that were evicted; empty where the call does not tell.
std::vector<uint8_t> evicted_of(const QueryTasks& tasks, size_t task) {
  const auto evicted = evictions_of(tasks.call_of(task));
  if (evicted.empty()) return {};
  const TokenGrid& shown = tasks.shown(task);
  const auto line =
      evicted_line(evicted, tasks.tokens_of(task).tokens, shown.tokens(), tasks.reverse);
  const IndexRange video = shown.video_range();
  return {line.begin() + video.begin, line.begin() + video.end};
}

}  // namespace

void mark_evicted(const QueryTasks& tasks, QueryVolumes& volumes) {
  for (size_t i = 0; i < volumes.volumes.size(); ++i) {
    volumes.volumes[i].evicted = evicted_of(tasks, i);
  }
}

}  // namespace attnscope
