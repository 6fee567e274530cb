#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/pictures/film/film_over.h"

namespace attnscope {

/// Which moments a film has: the latent frames, or the pictures of the finished video, for which
/// the latent frame that each belongs to is taken, or what lies between two of them.
enum class FilmTime : uint8_t { latent, nearest, linear };

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

std::string_view film_mode_name(FilmMode mode);
std::string_view film_time_name(FilmTime time);
std::optional<FilmMode> parse_film_mode(std::string_view name);
std::optional<FilmTime> parse_film_time(std::string_view name);
std::vector<std::string> film_mode_names();
std::vector<std::string> film_time_names();

}  // namespace attnscope
