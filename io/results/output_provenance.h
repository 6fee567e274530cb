#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/plan_share.h"
#include "io/files/json_types.h"

namespace attnscope {

/// Which part of a plan an output is, for comparison: {"shard", "plan_hash"}.
OrderedJson part_identity(const PlanPart& part);

/// Identity of a run that makes an output: {"capture_hash", "options"}, and of a part (null: of
/// all) part_identity() as well. Outputs of equal identities are equal.
OrderedJson run_identity(const std::string& capture_hash, const OrderedJson& options,
                         const PlanPart* part);

/// The run_identity() that a complete output records of the run that made it. `product` is "stats"
/// (a .json or .h5), "mask" (a .json) or "pooled" (an .h5). Throws Error(file) where the file is
/// none, or a .csv, which does not record it.
OrderedJson output_provenance(const std::filesystem::path& path, std::string_view product);

/// Reads a complete .json of "stats" or "mask", which records what it was made of. Throws
/// Error(file) where the file is none.
OrderedJson read_table_json(const std::filesystem::path& path, std::string_view product);

/// Throws Error(file) naming the first thing in which `found` differs from `expected`.
void expect_same_run(const OrderedJson& found, const OrderedJson& expected,
                     const std::filesystem::path& path);

}  // namespace attnscope
