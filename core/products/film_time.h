#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/products/query_volumes.h"

namespace attnscope {

/// Which moments a film has: the latent frames, or the pictures of the finished video, for which
/// the latent frame that each belongs to is taken, or what lies between two of them.
enum class FilmTime : uint8_t { latent, nearest, linear };
/// "latent", "nearest", "linear".
std::string_view film_time_name(FilmTime time);
std::optional<FilmTime> parse_film_time(std::string_view name);
std::vector<std::string> film_time_names();
/// Where the moments are not the latent frames: what their numbers are.
std::string_view film_time_text(FilmTime time);

/// A moment of a film: what lies `part` of the way from latent frame `t` to `next`, and the picture
/// of the video that belongs to it.
struct FilmMoment {
  int64_t t = 0, next = 0;
  double part = 0;       ///< 0 … 1
  int64_t picture = -1;  ///< its place in the capture's list; −1: there is none
  /// The frame whose numbers count where those of two cannot be mixed.
  int64_t nearer() const { return part > 0.5 ? next : t; }
  friend bool operator==(const FilmMoment&, const FilmMoment&) = default;
};

/// The moments of a film of `frames` latent frames, in their order. `pictures` has the latent frame
/// that each picture of the video belongs to; those beyond the film are left out.
///
/// latent: one a latent frame, with the middle one of its pictures. nearest and linear: one a
/// picture, ordered by latent frame and then as listed; nearest takes the picture's latent frame,
/// linear what lies between those whose pictures' middles are around it. Without pictures all are
/// latent.
std::vector<FilmMoment> film_moments(int64_t frames, std::span<const int64_t> pictures,
                                     FilmTime time);

/// The numbers of a moment, [cells]. `film` has [frames, cells]. Where one of two latent frames has
/// no number (−inf: masked, NaN: not known) the nearer one's is taken.
std::vector<float> moment_numbers(std::span<const float> film, int64_t cells,
                                  const FilmMoment& moment);

/// Volumes of latent frames as a film of these moments: a frame a moment; without values they
/// stay so. The query's cell is
/// outlined in the first moment that is nearest to its frame.
QueryVolumes volumes_at(QueryVolumes volumes, std::span<const FilmMoment> moments);

/// "t3" of a latent frame, "frame 12" of a picture.
std::string moment_name(const FilmMoment& moment, int64_t number, FilmTime time);

}  // namespace attnscope
