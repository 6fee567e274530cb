#include "viewer/app/film_export.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "core/base/error.h"
#include "io/pictures/film/film_animation.h"
#include "io/pictures/film/film_writer.h"
#include "io/pictures/picture_page.h"
#include "io/results/film_files.h"
#include "viewer/app/picture_file.h"

namespace attnscope {
namespace {

bool is_folder_name(const std::filesystem::path& path) { return !path.has_filename(); }

QueryVolumes volumes_of(const FilmExport::Film& film) {
  QueryVolumes volumes;
  const FilmContent& content = film.content;
  volumes.grid = {content.frames, content.height, content.width};
  volumes.capture = film.caption.capture;
  volumes.query_text = film.caption.what;
  volumes.domain_text = film.caption.domain;
  QueryVolume volume;
  volume.label = film.caption.head;
  volume.video = content.numbers;
  for (float& number : volume.video) {
    number = static_cast<float>(static_cast<double>(number) * film.factor);
  }
  volume.evicted = content.evicted;
  if (film.query) volume.query = {film.query->t, film.query->y, film.query->x};
  volumes.volumes.push_back(std::move(volume));
  return volumes_at(std::move(volumes), content.moments);
}

FilmStyle style_of(const FilmExport::Film& film, const std::filesystem::path& path) {
  FilmStyle style;
  if (is_page_name(path)) style.look = page_style(path, film.light);
  style.colours.map = film.scale.map();
  style.colours.scale = film.scale.kind();
  style.colours.range = {false, film.scale.range().low, film.scale.range().high, false};
  if (film.scale.is_of_nothing()) style.colours.range = {false, 0, 0, false};
  style.unit = film.caption.unit;
  style.frame_name = film.content.time == FilmTime::latent ? "t" : "frame";
  style.over.mode = film.look.mode;
  style.over.opacity = static_cast<double>(film.look.opacity);
  style.over.by_size = is_signed(film.content.how);
  style.over.outlined = film.content.outlined(film.factor);
  style.about = film_time_text(film.content.time);
  if (film.look.over && film.look.mode != FilmMode::tint) {
    const std::string over = over_text(film.look, film.content);
    style.about = over + (style.about.empty() ? "" : " \u00b7 " + style.about);
  }
  return style;
}

}  // namespace

void FilmExport::check_name(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  if (is_folder_name(path) || ending == ".gif" || ending == ".mp4" || is_page_name(path)) return;
  throw usage_error(
      fmt::format("film {}: expected a name that ends in .gif, .mp4, .png, .svg, .pdf, or / for a "
                  "picture of each moment",
                  one_line(path.string())));
}

FilmExport::FilmExport(const Film& film, std::filesystem::path path, bool force,
                       std::function<void()> wake)
    : path_(std::move(path)),
      force_(force),
      wake_(std::move(wake)),
      rate_(film_rate(film.look, film.content)) {
  check_name(path_);
  volumes_ = volumes_of(film);
  style_ = style_of(film, path_);
  if (is_page_name(path_)) {
    check_filmstrip(path_, volumes_, style_);
  } else if (!is_folder_name(path_)) {
    check_animation(path_, volumes_, style_);
  }
  if (!film.look.over || !film.content.has_pictures) return;
  const PageSize size = moment_size();
  for (const FilmMoment& moment : film.content.moments) {
    if (moment.picture < 0) {
      throw usage_error(fmt::format(
          "film {}: no picture of the video is recorded for latent frame {}; take film none",
          one_line(path_.string()), moment.t));
    }
    wanted_.push_back({moment.picture, std::min(size.width, kMostFrameSide),
                       std::min(size.height, kMostFrameSide)});
  }
}

PageSize FilmExport::moment_size() const {
  if (!is_page_name(path_)) {
    const FrameCells cells = FilmAnimation(volumes_, style_).cells(0);
    return {cells.width(), cells.height()};
  }
  const PixelRect cell = Filmstrip(volumes_, style_).cell(0, 0, 0);
  return {static_cast<int>(volumes_.grid[2]) * cell.width,
          static_cast<int>(volumes_.grid[1]) * cell.height};
}

std::vector<FrameRequest> FilmExport::wants() const {
  return {wanted_.begin() + static_cast<std::ptrdiff_t>(style_.video.size()), wanted_.end()};
}

void FilmExport::write() const {
  if (is_page_name(path_)) return write_filmstrip(volumes_, style_, path_, force_);
  if (!is_folder_name(path_)) return write_animation(volumes_, style_, path_, force_, rate_);
  const FilmAnimation film(volumes_, style_);
  write_png_sequence(
      film.frames(), [&](int t) { return film.frame(t); }, path_, force_);
}

void FilmExport::begin_to_write() {
  writing_ = std::async(std::launch::async, [this] {
    try {
      write();
    } catch (...) {
      wake_();
      throw;
    }
    wake_();
  });
}

bool FilmExport::step(const TileSource& tiles) {
  if (writing_.valid()) {
    if (writing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
    writing_.get();
    return true;
  }
  while (style_.video.size() < wanted_.size()) {
    const auto frame = find(tiles, wanted_[style_.video.size()]);
    if (!frame) return false;
    if (!frame->problem.empty()) throw Error(ErrorCode::file, frame->problem);
    style_.video.push_back(frame->image);
  }
  begin_to_write();
  return false;
}

}  // namespace attnscope
