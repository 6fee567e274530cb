#pragma once

#include <cstdint>

#include "core/heads/head_record.h"

namespace attnscope::test {

/// A record with a value in every number, sinks of each sort and two arrays, one with a gap.
/// `sampled`: its means have standard errors. Step 10, layer 3, cond, joint, batch item 0.
HeadRecord sample_record(int64_t head, bool sampled);

}  // namespace attnscope::test
