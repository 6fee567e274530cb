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
    case VolumeFormat::svg:
      return ".svg";
    case VolumeFormat::pdf:
      return ".pdf";
    case VolumeFormat::gif:
      return ".gif";
    case VolumeFormat::mp4:
      return ".mp4";
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

bool is_picture(VolumeFormat format) { return format >= VolumeFormat::png; }

PageSize check_film(VolumeFormat format, const std::filesystem::path& path,
                    const QueryVolumes& volumes, const FilmStyle& film) {
  if (format == VolumeFormat::gif || format == VolumeFormat::mp4) {
    return check_animation(path, volumes, film);
  }
  return check_filmstrip(path, volumes, film);
}

void write_volumes(VolumeFormat format, const QueryVolumes& volumes, const FilmStyle& film,
                   const std::filesystem::path& path, bool force) {
  switch (format) {
    case VolumeFormat::npy:
      return write_volumes_npy(volumes, path, force);
    case VolumeFormat::hdf5:
      return write_volumes_hdf5(volumes, path, force);
    case VolumeFormat::csv:
      return write_volumes_csv(volumes, path, force);
    case VolumeFormat::png:
    case VolumeFormat::svg:
    case VolumeFormat::pdf:
      return write_filmstrip(volumes, film, path, force);
    case VolumeFormat::gif:
    case VolumeFormat::mp4:
      return write_animation(volumes, film, path, force);
  }
}

}  // namespace attnscope
