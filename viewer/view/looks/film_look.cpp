#include "viewer/view/looks/film_look.h"

#include <algorithm>
#include <array>

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 3> kModes{"tint", "outline", "contour"};
constexpr std::array<std::string_view, 3> kTimes{"latent", "nearest", "linear"};

template <typename Enum, size_t kCount>
std::optional<Enum> parse_word(const std::array<std::string_view, kCount>& names,
                               std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view film_mode_name(FilmMode mode) { return kModes[static_cast<size_t>(mode)]; }
std::string_view film_time_name(FilmTime time) { return kTimes[static_cast<size_t>(time)]; }

std::optional<FilmMode> parse_film_mode(std::string_view name) {
  return parse_word<FilmMode>(kModes, name);
}
std::optional<FilmTime> parse_film_time(std::string_view name) {
  return parse_word<FilmTime>(kTimes, name);
}

std::vector<std::string> film_mode_names() { return {kModes.begin(), kModes.end()}; }
std::vector<std::string> film_time_names() { return {kTimes.begin(), kTimes.end()}; }

}  // namespace attnscope
