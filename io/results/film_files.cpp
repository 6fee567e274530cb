#include "io/results/film_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "io/pictures/film/film_animation.h"
#include "io/pictures/film/film_grid.h"
#include "io/pictures/film/film_writer.h"
#include "io/pictures/film/gif_writer.h"
#include "io/results/volume_check.h"

namespace attnscope {
namespace {

/// A picture's most rows: what common viewers open.
constexpr int kMaxPictureHeight = 65000;

}  // namespace

bool is_animation_name(const std::filesystem::path& path) {
  return path.extension() == ".gif" || path.extension() == ".mp4";
}

PageSize check_filmstrip(const std::filesystem::path& path, const QueryVolumes& volumes,
                         const FilmStyle& style) {
  if (FilmGrid::suits(volumes, style)) {
    const FilmGrid grid(volumes, style);
    return {grid.width(), grid.height(), grid.band_bytes()};
  }
  const Filmstrip film(volumes, style);
  const auto count = static_cast<int>(volumes.volumes.size());
  const int most = (kMaxPictureHeight - film.header_height()) / film.strip_height();
  if (count <= most) return {film.width(), film.height(), film.band_bytes()};
  const std::string heads = count == 1 ? "1 head does" : fmt::format("{} heads do", count);
  if (most < 1) {
    throw usage_error(fmt::format(
        "{}: {} not fit one picture ({} pixels high with one, at most {}): give a smaller --cell, "
        "--font-size or --dpi, or write a .npy",
        path.string(), heads, film.header_height() + film.strip_height(), kMaxPictureHeight));
  }
  throw usage_error(fmt::format(
      "{}: {} not fit one picture (at most {} of this size): select fewer, or write a .npy",
      path.string(), heads, most));
}

void write_filmstrip(const QueryVolumes& volumes, const FilmStyle& style,
                     const std::filesystem::path& path, bool force) {
  check_volumes(volumes, true);
  check_filmstrip(path, volumes, style);
  const std::string title = film_header(volumes, style).title;
  if (FilmGrid::suits(volumes, style)) {
    const FilmGrid grid(volumes, style);
    return write_picture(grid.page(), style.look, title, path, force);
  }
  const Filmstrip film(volumes, style);
  write_picture(film.page(), style.look, title, path, force);
}

PageSize check_animation(const std::filesystem::path& path, const QueryVolumes& volumes,
                         const FilmStyle& style) {
  const int64_t count = std::ssize(volumes.volumes);
  if (count > FilmAnimation::kMostVolumes) {
    throw usage_error(fmt::format(
        "{}: {} heads do not fit one animation (at most {}): select fewer, or write a .png",
        path.string(), count, FilmAnimation::kMostVolumes));
  }
  if (path.extension() == ".mp4") check_mp4(path);
  const FilmAnimation film(volumes, style);
  // An image, and what is encoded of it.
  return {film.width(), film.height(), int64_t{6} * film.width() * film.height()};
}

void write_animation(const QueryVolumes& volumes, const FilmStyle& style,
                     const std::filesystem::path& path, bool force, int rate) {
  check_volumes(volumes, true);
  check_animation(path, volumes, style);
  const FilmAnimation film(volumes, style);
  // A long video plays in about four seconds, a short one slowly enough to be seen.
  const int delay_ms = rate > 0 ? 1000 / rate : std::clamp(4000 / film.frames(), 80, 400);
  const auto draw = [&](int i) { return film.frame(i); };
  if (path.extension() == ".mp4") {
    const int per_second = rate > 0 ? rate : std::max(1, 1000 / delay_ms);
    return write_mp4(film.frames(), draw, per_second, path, force);
  }
  // With a video under the weights there are more colours than one palette has.
  write_gif(film.frames(), draw, {delay_ms, style.video.empty()}, path, force);
}

}  // namespace attnscope
