#include "viewer/view/row/film_content.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attnscope {
namespace {

/// Of logits, the share that lies below the outlined cells.
constexpr double kBelowOutline = 0.9;

}  // namespace

std::vector<float> FilmContent::numbers_at(size_t moment, double factor) const {
  std::vector<float> result = moment_numbers(numbers, cells(), moments[moment]);
  for (float& number : result) number = static_cast<float>(static_cast<double>(number) * factor);
  return result;
}

std::vector<uint8_t> FilmContent::evicted_at(size_t moment) const {
  if (evicted.empty()) return {};
  const FilmMoment& at = moments[moment];
  const auto of = [&](int64_t t) {
    return std::span(evicted).subspan(static_cast<size_t>(t * cells()),
                                      static_cast<size_t>(cells()));
  };
  const std::span<const uint8_t> nearer = of(at.nearer());
  return {nearer.begin(), nearer.end()};
}

size_t FilmContent::clamped_moment(int64_t moment) const {
  const auto last = static_cast<int64_t>(moments.size()) - 1;
  return static_cast<size_t>(std::clamp<int64_t>(moment, 0, std::max<int64_t>(last, 0)));
}

double FilmContent::outlined(double factor) const {
  if (how != Difference::off) {
    std::vector<float> sizes(numbers.size());
    std::transform(numbers.begin(), numbers.end(), sizes.begin(),
                   [](float number) { return std::abs(number); });
    return factor * quantile_threshold(sizes, kBelowOutline);
  }
  return factor * (quantity == Quantity::weights ? mass_threshold(numbers, kOutlinedMass)
                                                 : quantile_threshold(numbers, kBelowOutline));
}

FilmContent film_content(const MapLine& line, const TokenGrid& filmed, bool of_video,
                         std::span<const int64_t> pictures, FilmTime time,
                         std::span<const uint8_t> evicted, Difference how) {
  FilmContent content;
  content.frames = filmed.frames();
  content.height = filmed.height();
  content.width = filmed.width();
  content.quantity = line.request.quantity;
  content.how = how;
  const IndexRange video = filmed.video_range();
  content.numbers.assign(line.values.begin() + video.begin, line.values.begin() + video.end);
  for (int64_t i = 0; !line.masked.empty() && i < video.size(); ++i) {
    if (line.masked[static_cast<size_t>(video.begin + i)] == 0) continue;
    content.numbers[static_cast<size_t>(i)] = -std::numeric_limits<float>::infinity();
  }
  if (!evicted.empty()) {
    content.evicted.assign(evicted.begin() + video.begin, evicted.begin() + video.end);
  }
  const std::span<const int64_t> own = of_video ? pictures : std::span<const int64_t>();
  content.moments = film_moments(content.frames, own, time);
  content.has_pictures = std::any_of(content.moments.begin(), content.moments.end(),
                                     [](const FilmMoment& moment) { return moment.picture >= 0; });
  content.time = content.has_pictures ? time : FilmTime::latent;
  return content;
}

std::string over_text(const FilmLook& look, const FilmContent& content) {
  if (!look.over || !content.has_pictures) return "";
  switch (look.mode) {
    case FilmMode::outline:
      if (content.how != Difference::off)
        return "outlined: the tenth of the cells that differs most";
      return content.quantity == Quantity::weights
                 ? "outlined: the cells that hold half of the film's weight"
                 : "outlined: the highest tenth of the cells";
    case FilmMode::contour:
      return "contours at 20, 40, 60 and 80 % of the scale";
    case FilmMode::tint:
      break;
  }
  return "over the video in grey";
}

}  // namespace attnscope
