#pragma once

#include <filesystem>
#include <string>

#include "core/products/query_volumes.h"
#include "io/files/input_set.h"
#include "io/plan_parts/part_set.h"

namespace attnscope {

struct HelperQuestion;

/// True of an HDF5 file that says that it is query volumes.
bool is_volume_file(const std::filesystem::path& path);

/// A part of a query: which it is, and its volumes with their values.
struct PartVolumes {
  PartFacts facts;
  QueryVolumes volumes;
};

/// Reads what write_volume_part() wrote. The HDF5 library tells the structure, in the helper
/// process; values are read with our own pread, from `inputs`. Throws Error(file) where the file is
/// no such part, or damaged so far as it tells.
PartVolumes read_part_volumes(const std::filesystem::path& path, InputSet& inputs);

/// Question that the helper process answers (io/helper).
extern const HelperQuestion kVolumesQuestion;

}  // namespace attnscope
