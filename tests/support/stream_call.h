#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/reference_call.h"

namespace attnscope::test {

/// The joined call of four chunks of two frames of 2x3 cells, 48 tokens; the last ones see a sink
/// and a window of two frames. `positions`: their places in the stream are told.
inline ReferenceCall joined_call(bool positions) {
  ReferenceCall call({1, 1, 1, 48, 48, 8}, 5);
  const std::string place = positions ? R"(,"position":0)" : "";
  call.version(2)
      .fact("mask", "spans")
      .fact("queries",
            R"([{"name":"video","modality":"video","count":48,"grid":[8,2,3])" + place + "}]");
  const std::vector<int64_t> rows{0,  12, 0,  12, 0, 12, 24, 0, 24, 0, 24, 36, 0,  6,  0,
                                  24, 36, 12, 36, 0, 36, 48, 0, 6,  0, 36, 48, 24, 48, 0};
  call.tensor("mask_spans", "I64", {6, 5}, raw(rows));
  return call;
}

}  // namespace attnscope::test
