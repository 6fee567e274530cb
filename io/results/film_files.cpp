#include "io/results/film_files.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/error.h"
#include "io/files/staged_file.h"
#include "io/pictures/film/film_animation.h"
#include "io/pictures/film/gif_writer.h"
#include "io/pictures/png_writer.h"
#include "io/results/volume_check.h"

namespace attnscope {
namespace {

/// A picture's most rows: what common viewers open.
constexpr int kMaxPictureHeight = 65000;

}  // namespace

void check_film_size(const std::filesystem::path& path, std::array<int64_t, 3> grid,
                     int64_t volumes, const FilmStyle& style) {
  QueryVolumes empty;
  empty.grid = grid;
  const Filmstrip film(empty, style);
  const int most = (kMaxPictureHeight - film.header_height()) / film.strip_height();
  if (volumes <= most) return;
  throw usage_error(
      fmt::format("{}: {} heads do not fit one picture (at most {} of this size): select fewer, or "
                  "write a .npy",
                  path.string(), volumes, most));
}

void write_film_png(const QueryVolumes& volumes, const FilmStyle& style,
                    const std::filesystem::path& path, bool force) {
  check_volumes(volumes, true);
  check_film_size(path, volumes.grid, static_cast<int64_t>(volumes.volumes.size()), style);
  const Filmstrip film(volumes, style);
  StagedFile file(path, force);
  PngWriter png(file, film.width(), film.height());
  const auto write = [&png](const Canvas& canvas) {
    for (int y = 0; y < canvas.height(); ++y) png.write_row(canvas.row(y));
  };
  write(film.header());
  for (const QueryVolume& volume : volumes.volumes) write(film.strip(volume));
  png.finish();
  file.commit();
}

void check_animation_size(const std::filesystem::path& path, int64_t volumes) {
  if (volumes <= FilmAnimation::kMostVolumes) return;
  throw usage_error(fmt::format(
      "{}: {} heads do not fit one animation (at most {}): select fewer, or write a .png",
      path.string(), volumes, FilmAnimation::kMostVolumes));
}

void write_film_gif(const QueryVolumes& volumes, const FilmStyle& style,
                    const std::filesystem::path& path, bool force) {
  check_volumes(volumes, true);
  check_animation_size(path, static_cast<int64_t>(volumes.volumes.size()));
  const FilmAnimation film(volumes, style);
  GifOptions options;
  // A long video plays in about four seconds, a short one slowly enough to be seen.
  options.delay_ms = std::clamp(4000 / film.frames(), 80, 400);
  // With a video under the weights there are more colours than one palette has.
  options.shared_palette = style.video.empty();
  write_gif(
      film.frames(), [&](int t) { return film.frame(t); }, options, path, force);
}

}  // namespace attnscope
