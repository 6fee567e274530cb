#include "viewer/view/looks/tracks_look.h"

#include <algorithm>
#include <array>

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 4> kRowTracks{"off", "entropy", "lse", "text"};
constexpr std::array<std::string_view, 2> kKeyTracks{"off", "mass"};

template <typename Enum, size_t kCount>
std::optional<Enum> parse_track(const std::array<std::string_view, kCount>& names,
                                std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view row_track_name(RowTrack track) { return kRowTracks[static_cast<size_t>(track)]; }
std::string_view key_track_name(KeyTrack track) { return kKeyTracks[static_cast<size_t>(track)]; }

std::optional<RowTrack> parse_row_track(std::string_view name) {
  return parse_track<RowTrack>(kRowTracks, name);
}
std::optional<KeyTrack> parse_key_track(std::string_view name) {
  return parse_track<KeyTrack>(kKeyTracks, name);
}

RowTrack next_track(RowTrack track) {
  return static_cast<RowTrack>((static_cast<size_t>(track) + 1) % kRowTracks.size());
}

std::vector<std::string> row_track_names() { return {kRowTracks.begin(), kRowTracks.end()}; }
std::vector<std::string> key_track_names() { return {kKeyTracks.begin(), kKeyTracks.end()}; }

}  // namespace attnscope
