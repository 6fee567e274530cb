#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/heads/head_record.h"
#include "io/files/json_types.h"

namespace attnscope {

/// {"format": "attnscope-stats/1", …about, "heads": records}; `about` is a JSON object. Where its
/// "options" have "curve", heads have "keys_curve". Where a head was measured at several steps or
/// branches, and "options" have no "top", there is a "class_table".
OrderedJson stats_json(const OrderedJson& about, std::span<const HeadRecord> records);

/// The texts of their .csv files (RFC 4180), of which a line is a head, or a head and a mask: its
/// name and its numbers, undefined ones empty; `nearest`: with the heads nearest to it.
std::string stats_csv(std::span<const HeadRecord> records, bool nearest = false);
std::string mask_csv(const OrderedJson& rows);

/// Both create `path`, which must not exist, as `extension` says, and throw Error(file): ".json"
/// or ".csv".

/// stats_json(), or of it each head's class, numbers and sink_key; a standard error is a column
/// where any head has it.
void write_stats_table(const OrderedJson& about, std::span<const HeadRecord> records,
                       std::string_view extension, const std::filesystem::path& path);
/// `masks`, an "attnscope-mask/1" or "attnscope-lab/1" (docs/lab.md), or all that its heads say; a
/// line is a head and a mask.
void write_mask_table(const OrderedJson& masks, std::string_view extension,
                      const std::filesystem::path& path);

}  // namespace attnscope
