#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "core/heads/head_record.h"
#include "io/files/json_types.h"

namespace attnscope {

/// {"format": "attnscope-stats/1", …about, "heads": records}; `about` is a JSON object.
OrderedJson stats_json(const OrderedJson& about, std::span<const HeadRecord> records);

/// Both create `path`, which must not exist, as `extension` says, and throw Error(file): ".json",
/// or ".csv" (RFC 4180), of which a line is a head: its name and its numbers, undefined ones empty.

/// stats_json(), or of it each head's class, numbers and sink_key; a standard error is a column
/// where any head has it.
void write_stats_table(const OrderedJson& about, std::span<const HeadRecord> records,
                       std::string_view extension, const std::filesystem::path& path);
/// `masks`, an "attnscope-mask/1" (docs/masks.md), or all that its heads say; a line is a head and
/// a mask.
void write_mask_table(const OrderedJson& masks, std::string_view extension,
                      const std::filesystem::path& path);

}  // namespace attnscope
