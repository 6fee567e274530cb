#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "core/heads/head_record.h"

namespace attnscope {

/// {"format": "attnscope-stats/1", …about, "heads": records}; `about` is a JSON object.
nlohmann::ordered_json stats_json(const nlohmann::ordered_json& about,
                                  std::span<const HeadRecord> records);

/// Both create `path`, which must not exist, and throw Error(file).

/// stats_json() as a file.
void write_stats_json(const nlohmann::ordered_json& about, std::span<const HeadRecord> records,
                      const std::filesystem::path& path);
/// A line a head (RFC 4180): its name, class and numbers, undefined ones empty, and sink_key. A
/// standard error is a column where any head has it.
void write_stats_csv(std::span<const HeadRecord> records, const std::filesystem::path& path);

}  // namespace attnscope
