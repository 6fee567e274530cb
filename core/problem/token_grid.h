#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/index_range.h"
#include "core/problem/latent_coord.h"
#include "core/problem/token_segment.h"

namespace attnscope {

/// The kind of a place in the sequence. The segments of a token map that are none of these count
/// from `first_named` on, in their order.
enum class Segment : uint8_t { text = 0, video = 1, padding = 2, first_named = 3 };

/// Where the text stands in a joint sequence.
enum class TextPlace : uint8_t { none, start, end, all };

/// How latent cells map to the decoded video: one cell covers `pixels`² pixels; latent frame 0 is
/// `first_frames` video frames, every further one `frames`; where there are `chunks`, the first of
/// each so many latent frames is as frame 0.
struct VideoGeometry {
  int64_t first_frames = 1;
  int64_t frames = 4;
  int64_t pixels = 16;
  int64_t chunks = 0;
};

/// How an index of the sequence maps to text or to a latent (t, y, x). Video tokens are row-major
/// (t, y, x) and contiguous. Immutable value; thread-safe.
///
/// Where a token map was stated, segments() has all that it says, and the rest of this class tells
/// of two parts of it, the others being named: `video` is the first segment of video that has a
/// grid, else the first picture with one, else the first of video, else the first picture;
/// has_grid() where it is row-major. `text` is the first segment of text with those of text that
/// follow it at once.
class TokenGrid {
 public:
  /// A sequence of `tokens` indices about which nothing is known (all video, no grid).
  TokenGrid() = default;
  static TokenGrid unknown(int64_t tokens);
  /// All text.
  static TokenGrid text_only(int64_t tokens);
  /// A T×H×W grid with `text` text tokens at `place`. Throws Error(usage) when
  /// text + T·H·W ≠ tokens, naming both.
  static TokenGrid video(int64_t tokens, std::array<int64_t, 3> grid, int64_t text,
                         TextPlace place);
  /// `text` text tokens at `place` (start or end); of the others nothing is known but that they are
  /// video. Throws Error(usage) where they leave no video.
  static TokenGrid spans(int64_t tokens, int64_t text, TextPlace place);
  /// A token map: segments that follow each other from 0 on, not empty. Throws Error(usage) where
  /// they do not, or there are more than kMaxSegments.
  static TokenGrid of_segments(std::vector<TokenSegment> segments) {
    const size_t video = main_segment(segments);
    return of_segments(std::move(segments), video);
  }
  static constexpr size_t kMaxSegments = 200;
  /// Text tokens at or after `valid[batch item]` are padding (one number serves all items).
  /// Throws Error(usage) when a number is outside 0…text tokens.
  void set_text_valid(std::vector<int64_t> valid);

  int64_t tokens() const { return tokens_; }
  bool has_grid() const { return frames_ > 0; }
  int64_t frames() const { return frames_; }
  int64_t height() const { return height_; }
  int64_t width() const { return width_; }
  TextPlace text_place() const { return place_; }
  IndexRange text_range() const { return text_; }
  IndexRange video_range() const { return video_; }
  /// Of the short form; empty for a token map.
  const std::vector<int64_t>& text_valid() const { return text_valid_; }

  /// A copy of the token map with another segment as its `video`. Throws as segment_named().
  TokenGrid with_video(const std::string& segment) const;

  /// True where a token map was stated.
  bool has_map() const { return !segments_.empty(); }
  /// The token map; empty where none was stated.
  const std::vector<TokenSegment>& segments() const { return segments_; }
  /// The segment of a place of a token map, by its number.
  size_t segment_number(int64_t index) const;
  /// Throws Error(usage) that lists the segments where none has this name.
  const TokenSegment& segment_named(const std::string& name) const;
  /// The kind of a segment's tokens where they are no padding.
  Segment class_of(size_t segment) const { return classes_[segment]; }
  /// The number of a place's token in its stream; nothing where it is of none.
  std::optional<int64_t> position(int64_t index) const;
  /// The segments that are neither `video` nor of `text`.
  std::vector<TokenSegment> other_segments() const;
  /// Names of the segments from Segment::first_named on.
  std::vector<std::string> named_segments() const;
  /// True where any token may be padding.
  bool has_padding() const;
  /// Batch items whose padding may differ; 1: it is the same.
  int64_t valid_items() const;
  /// True where two batch items have equal padding.
  bool same_padding(int64_t a, int64_t b) const;
  /// All places that are not video, as ascending ranges.
  std::vector<IndexRange> outside_video() const;
  /// "(t, y, x)", "text 3", "padding 7", "ref1 (t, y, x)", "audio 12": of a place of a token map.
  std::string place_text(int64_t index, int64_t batch = 0) const;

  /// True where the places of both sequences mean the same tokens; padding may differ.
  bool same_places(const TokenGrid& other) const;

  /// Index must be within the sequence.
  Segment segment(int64_t index, int64_t batch = 0) const;
  /// The latent position, or nothing for text and where there is no grid.
  std::optional<LatentCoord> coord(int64_t index) const;
  /// As coord(), of every segment of a token map that has a grid, in any order of its cells.
  std::optional<LatentCoord> any_coord(int64_t index) const;
  /// Throws Error(usage) naming the valid range when the position is outside, or no grid is known.
  int64_t index_of(LatentCoord coord) const;
  /// The video frames that latent frame t covers, half-open.
  static IndexRange video_frames(int64_t t, const VideoGeometry& geometry);

  /// "13x30x45" or "none"; of a token map that has other parts than a grid and text, "none".
  std::string grid_text() const;
  /// "226@start", "256@end", "none" or "all"; of such a token map, "none".
  std::string text_text() const;

  friend bool operator==(const TokenGrid&, const TokenGrid&) = default;

 private:
  /// The number of the segment that is `video`; past the end: there is none.
  static size_t main_segment(const std::vector<TokenSegment>& segments);
  static TokenGrid of_segments(std::vector<TokenSegment> segments, size_t main);

  int64_t tokens_ = 0;
  int64_t frames_ = 0;
  int64_t height_ = 0;
  int64_t width_ = 0;
  TextPlace place_ = TextPlace::none;
  IndexRange text_;
  IndexRange video_;
  std::vector<int64_t> text_valid_;
  std::vector<TokenSegment> segments_;
  std::vector<Segment> classes_;  ///< one a segment
};

/// "13x30x45" → {13, 30, 45}; each at least 1. Throws Error(usage) otherwise.
std::array<int64_t, 3> parse_grid(const std::string& text);

/// "226@start", "226@end", "none", "all".
struct TextSpan {
  int64_t count = 0;
  TextPlace place = TextPlace::none;
};
TextSpan parse_text_span(const std::string& text);

}  // namespace attnscope
