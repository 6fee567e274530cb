#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace attnscope {

/// What a complete .json or .h5 of stats says it was made of: {"capture_hash", "options"}. Throws
/// Error(file) where the file is neither, or a .csv, which does not say.
nlohmann::ordered_json finished_stats(const std::filesystem::path& path);

/// Throws Error(file) naming the first thing in which `found` differs from `expected`.
void expect_same_run(const nlohmann::ordered_json& found, const nlohmann::ordered_json& expected,
                     const std::filesystem::path& path);

}  // namespace attnscope
