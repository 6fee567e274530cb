#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/capture/call/call_part.h"
#include "io/capture/capture.h"

namespace attnscope {

/// Tokens of a call that one process recorded.
struct RankCall {
  const CallEntry* call = nullptr;
  CallPart part;
};

/// The captures that the processes of one run wrote into FOLDER/rank-R-of-N, and which of their
/// calls are parts of one.
class PartSet {
 public:
  /// Throws Error(file) where a rank is missing, twice there or of another run, a call of one is in
  /// no other, or cannot be read, or where something beside q and k, which is not carried over,
  /// shapes the map. `facts` are told of every rank.
  static PartSet open(const std::filesystem::path& folder, const FactOverrides& facts,
                      const ReadControl& control);

  /// By rank.
  const std::vector<Capture>& captures() const { return captures_; }
  /// The calls in the order of Capture::calls(), each with the parts of all ranks.
  const std::vector<std::vector<RankCall>>& calls() const { return calls_; }

 private:
  std::vector<Capture> captures_;
  std::vector<std::vector<RankCall>> calls_;
};

}  // namespace attnscope
