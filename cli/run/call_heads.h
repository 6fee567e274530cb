#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "core/problem/head_name.h"
#include "io/capture/capture.h"

namespace attnscope {

/// A head of a capture's call.
struct CallHead {
  const CallEntry* call = nullptr;  ///< borrowed of the capture
  int64_t batch = 0, head = 0;
};
/// The heads of these calls by their names.
std::map<HeadName, CallHead> heads_by_name(const std::vector<SelectedCall>& calls);

/// The heads of all batch items.
int64_t head_count(const std::vector<SelectedCall>& calls);

/// How many keys a row of a head may see, mean over up to 256 evenly spread rows, looked up once a
/// call and item where all heads have one mask. One thread's.
class SeenKeys {
 public:
  /// Nothing where no such row sees a key.
  std::optional<double> of(const CallHead& head);

 private:
  std::map<std::tuple<const AttentionProblem*, int64_t, int64_t>, std::optional<double>> seen_;
};

}  // namespace attnscope
