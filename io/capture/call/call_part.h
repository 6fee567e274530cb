#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/index_range.h"
#include "io/capture/call/call_entry.h"
#include "io/capture/call/head_tensors.h"
#include "io/capture/facts/call_facts.h"

namespace attnscope {

/// The fact `part`: what a call is a part of, of which several processes recorded theirs.
struct CallPart {
  int64_t rank = 0, ranks = 1;  ///< process `rank` of `ranks`
  std::string run;              ///< what all of them call the run; empty: not known
  /// Where the call's queries and keys stand in the whole sequences, in the order in which the
  /// tensors have them; both empty where the call has all tokens.
  std::vector<IndexRange> queries, keys;
  std::string whole;  ///< facts of the whole sequences, a JSON object; empty with the ranges

  bool has_some_tokens() const { return !queries.empty(); }
};

/// Reads it; nothing where it is not stated. Throws as bad_fact() where it is malformed, or its
/// ranges are not those of the tensors.
std::optional<CallPart> call_part(const CallFacts& facts, const HeadTensors& heads);
/// The part that an opened call states; nothing where it is a whole one.
std::optional<CallPart> part_of(const CallEntry& call);
/// Names of the tensors that the facts of the whole name.
std::set<std::string> part_tensors(const CallPart& part);
/// "rank 1 of 2, queries 4-7, 20-31, keys 0-9 of the whole map": one line.
std::string part_text(const CallPart& part);

}  // namespace attnscope
