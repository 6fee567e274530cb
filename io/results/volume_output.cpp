#include "io/results/volume_output.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "io/files/file_ending.h"
#include "io/results/film_files.h"
#include "io/results/volume_files.h"
#include "io/results/volume_hdf5.h"

namespace attnscope {
namespace {

std::string_view extension_of(VolumeFormat format) {
  switch (format) {
    case VolumeFormat::npy:
      return ".npy";
    case VolumeFormat::hdf5:
      return ".h5";
    case VolumeFormat::csv:
      return ".csv";
    case VolumeFormat::png:
      return ".png";
    case VolumeFormat::gif:
      return ".gif";
  }
  return {};
}

}  // namespace

VolumeFormat volume_format_of(const std::filesystem::path& path,
                              std::span<const VolumeFormat> allowed) {
  std::vector<std::string_view> endings;
  for (const VolumeFormat format : allowed) endings.push_back(extension_of(format));
  require_ending(path, endings);
  return *std::find_if(allowed.begin(), allowed.end(), [&](VolumeFormat format) {
    return path.extension() == extension_of(format);
  });
}

void check_volume_count(VolumeFormat format, const std::filesystem::path& path,
                        std::array<int64_t, 3> grid, int64_t volumes) {
  if (format == VolumeFormat::png) check_film_size(path, grid, volumes, {});
  if (format == VolumeFormat::gif) check_animation_size(path, volumes);
}

void write_volumes(VolumeFormat format, const QueryVolumes& volumes,
                   const std::filesystem::path& path, bool force) {
  switch (format) {
    case VolumeFormat::npy:
      return write_volumes_npy(volumes, path, force);
    case VolumeFormat::hdf5:
      return write_volumes_hdf5(volumes, path, force);
    case VolumeFormat::csv:
      return write_volumes_csv(volumes, path, force);
    case VolumeFormat::png:
      return write_film_png(volumes, {}, path, force);
    case VolumeFormat::gif:
      return write_film_gif(volumes, {}, path, force);
  }
}

}  // namespace attnscope
