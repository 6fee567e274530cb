#include "core/products/film_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 3> kTimes{"latent", "nearest", "linear"};

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

/// [moments, cells] of [frames, cells].
template <class T, class At>
std::vector<T> film_at(std::span<const FilmMoment> moments, const At& at) {
  std::vector<T> film;
  for (const FilmMoment& moment : moments) {
    const auto& numbers = at(moment);
    film.insert(film.end(), numbers.begin(), numbers.end());
  }
  return film;
}

}  // namespace

std::string_view film_time_name(FilmTime time) { return kTimes[static_cast<size_t>(time)]; }

std::optional<FilmTime> parse_film_time(std::string_view name) {
  const auto* const found = std::find(kTimes.begin(), kTimes.end(), name);
  if (found == kTimes.end()) return std::nullopt;
  return static_cast<FilmTime>(found - kTimes.begin());
}

std::vector<std::string> film_time_names() { return {kTimes.begin(), kTimes.end()}; }

std::string_view film_time_text(FilmTime time) {
  switch (time) {
    case FilmTime::nearest:
      return "each picture with the numbers of its latent frame";
    case FilmTime::linear:
      return "linear between latent frames";
    case FilmTime::latent:
      break;
  }
  return "";
}

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

QueryVolumes volumes_at(QueryVolumes volumes, std::span<const FilmMoment> moments) {
  const int64_t cells = volumes.grid[1] * volumes.grid[2];
  volumes.grid[0] = static_cast<int64_t>(moments.size());
  for (QueryVolume& volume : volumes.volumes) {
    if (!volume.video.empty()) {
      volume.video = film_at<float>(moments, [&](const FilmMoment& moment) {
        return moment_numbers(volume.video, cells, moment);
      });
    }
    if (!volume.evicted.empty()) {
      volume.evicted = film_at<uint8_t>(moments, [&](const FilmMoment& moment) {
        return std::span(volume.evicted)
            .subspan(static_cast<size_t>(moment.nearer() * cells), static_cast<size_t>(cells));
      });
    }
    if (!volume.query) continue;
    const auto shown = std::find_if(moments.begin(), moments.end(), [&](const FilmMoment& moment) {
      return moment.nearer() == (*volume.query)[0];
    });
    if (shown == moments.end()) {
      volume.query.reset();
    } else {
      (*volume.query)[0] = shown - moments.begin();
    }
  }
  return volumes;
}

std::string moment_name(const FilmMoment& moment, int64_t number, FilmTime time) {
  if (time == FilmTime::latent) return "t" + std::to_string(moment.t);
  return "frame " + std::to_string(number);
}

}  // namespace attnscope
