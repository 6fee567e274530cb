#pragma once

#include <string>
#include <vector>

#include "core/base/index_range.h"
#include "core/problem/token_grid.h"

namespace attnscope {

/// A part of a sequence by its name.
struct SequencePart {
  std::string name;
  IndexRange tokens;
  friend bool operator==(const SequencePart&, const SequencePart&) = default;
};

/// The segments of a sequence in its order, padding included: those of its token map, else "text"
/// and "video". Segments without tokens are left out.
std::vector<SequencePart> sequence_segments(const TokenGrid& tokens);

/// As sequence_segments(), but a video of consecutive frames as its frames: "t0", "t1" …
std::vector<SequencePart> sequence_frames(const TokenGrid& tokens);

}  // namespace attnscope
