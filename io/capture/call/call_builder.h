#pragma once

#include <set>
#include <string>
#include <vector>

#include "io/capture/call/call_entry.h"
#include "io/capture/call/collected_call.h"
#include "io/capture/facts/fact_overrides.h"
#include "io/files/read_progress.h"

namespace attnscope {

/// A validated call, and what its reader should know of it.
struct BuiltCall {
  CallEntry entry;
  std::vector<std::string> notes;
  std::set<std::string> left_out = {};  ///< names of which is told that there is nothing
};

/// Makes the call that facts and tensors describe: fills in what is missing as the format's
/// defaults say, turns q and k where --rope asks for it, and checks that everything fits. Throws
/// Error(file) naming the call where recorded facts are wrong, Error(usage) where an option is.
BuiltCall build_call(CollectedCall call, const FactOverrides& overrides,
                     const ReadControl& control);

}  // namespace attnscope
