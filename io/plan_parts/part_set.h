#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "io/export/format/export_part_json.h"

namespace attnscope {

/// Facts that decide if a part belongs with others.
struct PartFacts {
  std::filesystem::path path;
  StoredPart part;
  std::string backend;  ///< what computed it; empty: nothing was computed
};

/// The places of the parts in the order of their shares, one of each. Throws Error(file) that names
/// what is missing, what is there twice and what belongs to another plan, each with its files; also
/// where two parts were computed by different backends, whose bits differ, unless `mixed` allows
/// it. `parts` is not empty.
std::vector<size_t> order_of_parts(std::span<const PartFacts> parts, bool mixed);

/// The backends that computed them, each once, ascending: "cpu", or "cpu + cpu-amx".
std::string joined_backends(std::span<const PartFacts> parts);

/// The hash of the whole selection, of which each part has its calls'. Throws Error(file) where a
/// call that two parts share is another one in each: they were computed from different captures.
std::string hash_of_whole(std::span<const PartFacts> parts);

}  // namespace attnscope
