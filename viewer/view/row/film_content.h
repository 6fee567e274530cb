#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/problem/token_grid.h"
#include "viewer/view/looks/film_look.h"
#include "viewer/view/maps/map_tile.h"

namespace attnscope {

/// A line of the map as a film. A value.
struct FilmContent {
  int64_t frames = 0, height = 0, width = 0;  ///< latent
  /// [frames, height, width]: as they are in the line, −inf where masked, NaN where not known.
  std::vector<float> numbers;
  /// [frames, height, width]: 1 where a cache had dropped the cell's token; empty: nowhere.
  std::vector<uint8_t> evicted = {};
  Quantity quantity = Quantity::weights;
  Difference how = Difference::off;  ///< the numbers are differences of two maps
  std::vector<FilmMoment> moments;
  FilmTime time = FilmTime::latent;
  /// True of a film of the video where there are pictures of it.
  bool has_pictures = false;

  int64_t cells() const { return height * width; }
  /// [height, width] times `factor`.
  std::vector<float> numbers_at(size_t moment, double factor) const;
  /// [height, width]; empty: nothing of the film was evicted.
  std::vector<uint8_t> evicted_at(size_t moment) const;
  /// The place in the film, within it.
  size_t clamped_moment(int64_t moment) const;
  /// The smallest number, times `factor`, that an outline has within it: half of its weight lies
  /// within, or the highest tenth of the logits; of differences, the smallest size of the tenth
  /// that differs most.
  double outlined(double factor) const;
};

/// `filmed` is the line's side of the map, with what is filmed as its video, which must have a
/// grid; `of_video` says whether that is the video that the pictures are of. `pictures` as
/// film_moments(); `evicted` has the tokens of the side, or is empty.
FilmContent film_content(const MapLine& line, const TokenGrid& filmed, bool of_video,
                         std::span<const int64_t> pictures, FilmTime time,
                         std::span<const uint8_t> evicted = {}, Difference how = Difference::off);

/// How the numbers lie over the video, for a legend; empty where they do not.
std::string over_text(const FilmLook& look, const FilmContent& content);

/// Images a second: of latent frames, and of those of a video, where no rate was chosen.
inline constexpr int kLatentRate = 4;
inline constexpr int kVideoRate = 16;
inline int film_rate(const FilmLook& look, const FilmContent& content) {
  if (look.rate > 0) return look.rate;
  return content.time == FilmTime::latent ? kLatentRate : kVideoRate;
}

}  // namespace attnscope
