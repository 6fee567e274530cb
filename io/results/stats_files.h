#pragma once

#include <filesystem>
#include <span>

#include "core/heads/head_record.h"
#include "io/files/json_types.h"

namespace attnscope {

/// {"format": "attnscope-stats/1", …about, "heads": records}; `about` is a JSON object.
OrderedJson stats_json(const OrderedJson& about, std::span<const HeadRecord> records);

/// Both create `path`, which must not exist, and throw Error(file).

/// stats_json() as a file.
void write_stats_json(const OrderedJson& about, std::span<const HeadRecord> records,
                      const std::filesystem::path& path);
/// A line a head (RFC 4180): its name, class and numbers, undefined ones empty, and sink_key. A
/// standard error is a column where any head has it.
void write_stats_csv(std::span<const HeadRecord> records, const std::filesystem::path& path);

}  // namespace attnscope
