#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/plan_share.h"
#include "io/files/json_types.h"

namespace attnscope {

struct ExportSpec;

/// The attributes `shard`, `plan_hash` and `part` of a part's file.
struct StoredPart {
  PlanPart plan;
  std::vector<int64_t> calls;            ///< places of its calls in the whole selection
  std::vector<std::string> call_hashes;  ///< of each of them
};

/// The attribute `part` of a spec with a share: {"units": [first, past the last, all], "calls":
/// [[place, hash], …]}.
std::string export_part_json(const ExportSpec& spec);

/// The facts of a part that is JSON: {"shard", "plan_hash", "part": {"units", "calls": []}}.
OrderedJson part_json(const PlanPart& part);
/// Those facts, and the digests of calls that the part has heads of, by their places in the plan.
OrderedJson part_json(const PlanPart& part, const std::vector<int64_t>& places,
                      const std::vector<std::string>& call_hashes);

/// Of the three attributes. Throws Error(file) naming `file` where they are not what a part says.
StoredPart parse_export_part(const std::string& shard, const std::string& plan_hash,
                             const std::string& part, const std::string& file);

}  // namespace attnscope
