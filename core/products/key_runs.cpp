#include "core/products/key_runs.h"

namespace attnscope {
namespace {

/// Keys that lie no further apart are computed together: backends take keys in blocks of this order
/// anyway.
constexpr int64_t kMostGap = 256;

}  // namespace

KeyRun make_key_run(std::span<const int64_t> chosen, size_t first, size_t past, IndexRange keys) {
  KeyRun run{keys, first, {}};
  for (size_t i = first; i < past; ++i) run.columns.push_back(chosen[i] - keys.begin);
  return run;
}

std::vector<KeyRun> key_runs(std::span<const int64_t> chosen, size_t first, size_t past) {
  std::vector<KeyRun> runs;
  for (size_t begin = first; begin < past;) {
    size_t end = begin + 1;
    while (end < past && chosen[end] - chosen[end - 1] <= kMostGap &&
           chosen[end] - chosen[begin] < kMostRunKeys) {
      ++end;
    }
    runs.push_back(make_key_run(chosen, begin, end, {chosen[begin], chosen[end - 1] + 1}));
    begin = end;
  }
  return runs;
}

}  // namespace attnscope
