#pragma once

#include <filesystem>
#include <string>

#include "io/files/json_types.h"

namespace attnscope {

/// What masks keep ("attnscope-mask/1", docs/masks.md) as lines of commas: the columns of its
/// heads, undefined ones empty; block, slot, chunk and forward where any head has them.
std::string mask_csv(const OrderedJson& masks);

/// The content of a file of that name: .csv, or .json.
std::string mask_file_text(const OrderedJson& masks, const std::filesystem::path& name);

/// Writes it as .json or, by the name's end, as .csv. Complete or not at all. Throws Error(file).
void write_mask_file(const OrderedJson& masks, const std::filesystem::path& path, bool force);

}  // namespace attnscope
