#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

/// A number of every row that is shown beside the map's queries.
enum class RowTrack : uint8_t { off, entropy, lse, text };
/// A number of every key that is shown beside the map's keys.
enum class KeyTrack : uint8_t { off, mass };
std::string_view row_track_name(RowTrack track);
std::string_view key_track_name(KeyTrack track);
std::optional<RowTrack> parse_row_track(std::string_view name);
std::optional<KeyTrack> parse_key_track(std::string_view name);
std::vector<std::string> row_track_names();
std::vector<std::string> key_track_names();

/// The one after it, off after the last.
RowTrack next_track(RowTrack track);

/// The tracks that stand beside the map along its axes.
struct TracksLook {
  RowTrack rows = RowTrack::off;
  KeyTrack keys = KeyTrack::off;

  bool any() const { return rows != RowTrack::off || keys != KeyTrack::off; }
  friend bool operator==(const TracksLook&, const TracksLook&) = default;
};

}  // namespace attnscope
