#pragma once

#include <cstdint>

#include "core/products/film_time.h"
#include "io/pictures/film/film_over.h"

namespace attnscope {

inline constexpr int kMostFilmRate = 60;

/// How the film of the query pane is shown.
struct FilmLook {
  bool over = false;  ///< over the capture's own frames
  FilmMode mode = FilmMode::tint;
  float opacity = 1;  ///< of the tint, above 0 to 1
  FilmTime time = FilmTime::latent;
  bool one = false;    ///< one moment as large as it goes, not all of them as a strip
  bool loop = true;    ///< playing begins again at the end
  int64_t moment = 0;  ///< that is shown large
  int rate = 0;        ///< moments a second, at most kMostFilmRate; 0: the usual one of its moments
  friend bool operator==(const FilmLook&, const FilmLook&) = default;
};

}  // namespace attnscope
