#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cli/query/query_tasks.h"
#include "io/files/json_types.h"
#include "io/results/volume_output.h"

namespace attnscope {

/// The sequence that volumes show, and what they were made of.
struct ShownSequence {
  const TokenGrid& tokens;
  bool reverse = false;  ///< the tokens are queries
  std::vector<std::filesystem::path> inputs;
};

/// The format that the name of -o asks for, or nothing without -o; checks what can be checked
/// before the work: `count` volumes of the sequence are to be written. Throws Error(usage) where
/// the name or the sequence do not suit, Error(file) for a target that cannot be written.
std::optional<VolumeFormat> choose_format(const QueryRequest& request, const ShownSequence& shown,
                                          size_t count);

/// "domain video, weighting value, mean over heads"
std::string describe_output(const QueryVolumes& volumes);

/// The summaries of all heads on standard output: as JSON with --json, as text without -o.
void print_summaries(const QueryRequest& request, const QueryVolumes& volumes,
                     const OrderedJson& heads);

}  // namespace attnscope
