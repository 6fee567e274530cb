#pragma once

#include <filesystem>
#include <string>

#include "core/base/plan_share.h"
#include "core/products/query_volumes.h"

namespace attnscope {

/// Datasets `volume` [n, T, H, W], `text` [n, text tokens] and coordinates, dimension scales. As
/// write_volumes_npy().
void write_volumes_hdf5(const QueryVolumes& volumes, const std::filesystem::path& path, bool force);

/// Facts by which a file of volumes says that it is a part.
struct VolumePart {
  PlanPart plan;
  std::string backend;  ///< what computed it
};
/// Writes the file of a part, which may have no volumes; only attributes then.
void write_volume_part(const QueryVolumes& volumes, const VolumePart& part,
                       const std::filesystem::path& path, bool force);

}  // namespace attnscope
