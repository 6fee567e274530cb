#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"

namespace attnscope::test {

/// 4 heads over 2 of K; 4 text tokens ("▁a", "▁dra", "gon", "") at the `place` "start" or "end" of
/// 3 frames of 4 x 5.
ReferenceCall joint_call(const std::string& place, uint64_t seed);

/// Chosen keys with what each counts.
using Keys = std::vector<std::pair<int64_t, double>>;

/// Who attends to the keys, [heads, video queries], in double: the video of a call with frames of
/// 20 tokens starts at `video`. Rows are renormalised over the key's domain; where `weigh` is set
/// weights are multiplied by the norms of the values.
std::vector<double> columns(const ReferenceCall& call, const Keys& keys, const std::string& domain,
                            int64_t video, int64_t video_count, bool weigh = false);

/// The numbers that `query` with these arguments writes to a .npy; the test fails where it cannot.
std::vector<float> query_npy(std::vector<std::string> arguments, const TemporaryFolder& folder);

}  // namespace attnscope::test
