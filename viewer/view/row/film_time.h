#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "viewer/view/looks/film_look.h"

namespace attnscope {

/// A moment of a film: what lies `part` of the way from latent frame `t` to `next`, and the picture
/// of the video that belongs to it.
struct FilmMoment {
  int64_t t = 0, next = 0;
  double part = 0;       ///< 0 … 1
  int64_t picture = -1;  ///< its place in the capture's list; −1: there is none
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

/// "t3" of a latent frame, "frame 12" of a picture.
std::string moment_name(const FilmMoment& moment, int64_t number, FilmTime time);

}  // namespace attnscope
