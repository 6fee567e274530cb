#include "viewer/view/row/film_time.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace attnscope {
namespace {

/// The pictures of each latent frame, in the order of the list.
std::vector<std::vector<int64_t>> pictures_of(int64_t frames, std::span<const int64_t> pictures) {
  std::vector<std::vector<int64_t>> of(static_cast<size_t>(frames));
  for (size_t i = 0; i < pictures.size(); ++i) {
    if (pictures[i] < 0 || pictures[i] >= frames) continue;
    of[static_cast<size_t>(pictures[i])].push_back(static_cast<int64_t>(i));
  }
  return of;
}

/// Where the latent frames that have pictures stand among these: the middle of their own.
struct PictureMiddle {
  int64_t t = 0;
  double at = 0;
};

}  // namespace

std::vector<FilmMoment> film_moments(int64_t frames, std::span<const int64_t> pictures,
                                     FilmTime time) {
  const auto of = pictures_of(frames, pictures);
  std::vector<FilmMoment> moments;
  const bool any = std::any_of(of.begin(), of.end(), [](const auto& own) { return !own.empty(); });
  if (time == FilmTime::latent || !any) {
    for (int64_t t = 0; t < frames; ++t) {
      const std::vector<int64_t>& own = of[static_cast<size_t>(t)];
      moments.push_back({t, t, 0, own.empty() ? -1 : own[(own.size() - 1) / 2]});
    }
    return moments;
  }
  std::vector<PictureMiddle> middles;
  for (int64_t t = 0; t < frames; ++t) {
    const std::vector<int64_t>& own = of[static_cast<size_t>(t)];
    if (own.empty()) continue;
    const auto first = static_cast<double>(moments.size());
    middles.push_back({t, first + (static_cast<double>(own.size()) - 1) / 2});
    for (const int64_t picture : own) moments.push_back({t, t, 0, picture});
  }
  if (time == FilmTime::nearest) return moments;
  for (size_t i = 0; i < moments.size(); ++i) {
    const auto at = static_cast<double>(i);
    const auto after = std::find_if(middles.begin(), middles.end(),
                                    [&](const PictureMiddle& middle) { return middle.at >= at; });
    // Before the first middle and after the last there is nothing to go to.
    if (after == middles.begin() || after == middles.end()) continue;
    const PictureMiddle& before = *(after - 1);
    const double part = (at - before.at) / (after->at - before.at);
    moments[i] = {before.t, after->t, part, moments[i].picture};
    if (part == 1) moments[i] = {after->t, after->t, 0, moments[i].picture};
  }
  return moments;
}

std::vector<float> moment_numbers(std::span<const float> film, int64_t cells,
                                  const FilmMoment& moment) {
  const auto size = static_cast<size_t>(cells);
  const auto first = film.subspan(static_cast<size_t>(moment.t) * size, size);
  std::vector<float> numbers(first.begin(), first.end());
  if (moment.part <= 0) return numbers;
  const auto second = film.subspan(static_cast<size_t>(moment.next) * size, size);
  for (size_t i = 0; i < size; ++i) {
    if (std::isfinite(first[i]) && std::isfinite(second[i])) {
      numbers[i] = static_cast<float>((1 - moment.part) * static_cast<double>(first[i]) +
                                      moment.part * static_cast<double>(second[i]));
    } else if (moment.part > 0.5) {
      numbers[i] = second[i];
    }
  }
  return numbers;
}

std::string moment_name(const FilmMoment& moment, int64_t number, FilmTime time) {
  if (time == FilmTime::latent) return fmt::format("t{}", moment.t);
  return fmt::format("frame {}", number);
}

}  // namespace attnscope
