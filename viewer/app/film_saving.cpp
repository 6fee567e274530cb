#include "viewer/app/film_saving.h"

#include <utility>

namespace attnscope {

void FilmSaving::begin(std::unique_ptr<FilmExport> film, bool waits) {
  export_ = std::move(film);
  failure_.reset();
  waits_ = waits;
}

bool FilmSaving::saved() {
  if (failure_) throw Error(*std::exchange(failure_, std::nullopt));
  return !is_on();
}

std::vector<FrameRequest> FilmSaving::wants() const {
  return export_ ? export_->wants() : std::vector<FrameRequest>();
}

std::optional<std::filesystem::path> FilmSaving::step(const Document& document) {
  if (!export_) return std::nullopt;
  try {
    if (!export_->step(*document.tiles)) return std::nullopt;
    document.require_unchanged();
  } catch (const Error& error) {
    export_.reset();
    if (!waits_) throw;
    failure_ = error;
    return std::nullopt;
  }
  return std::exchange(export_, nullptr)->path();
}

}  // namespace attnscope
