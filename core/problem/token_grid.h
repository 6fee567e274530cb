#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/index_range.h"

namespace attnscope {

/// What a place in the sequence is.
enum class Segment : uint8_t { text = 0, video = 1, padding = 2 };

/// A latent position: frame, row, column.
struct LatentCoord {
  int64_t t = 0;
  int64_t y = 0;
  int64_t x = 0;
  friend constexpr bool operator==(const LatentCoord&, const LatentCoord&) = default;
};

/// Where the text stands in a joint sequence.
enum class TextPlace : uint8_t { none, start, end, all };

/// How latent cells map to the decoded video: one cell covers `pixels`² pixels; latent frame 0 is
/// `first_frames` video frames, every further one `frames`.
struct VideoGeometry {
  int64_t first_frames = 1;
  int64_t frames = 4;
  int64_t pixels = 16;
};

/// How an index of the sequence maps to text or to a latent (t, y, x). Video tokens are row-major
/// (t, y, x) and contiguous. Immutable value; thread-safe.
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
  const std::vector<int64_t>& text_valid() const { return text_valid_; }

  /// Index must be within the sequence.
  Segment segment(int64_t index, int64_t batch = 0) const;
  /// The latent position, or nothing for text and where there is no grid.
  std::optional<LatentCoord> coord(int64_t index) const;
  /// Throws Error(usage) naming the valid range when the position is outside, or no grid is known.
  int64_t index_of(LatentCoord coord) const;
  /// The video frames that latent frame t covers, half-open.
  static IndexRange video_frames(int64_t t, const VideoGeometry& geometry);

  /// "13x30x45" or "none".
  std::string grid_text() const;
  /// "226@start", "256@end", "none" or "all".
  std::string text_text() const;

  friend bool operator==(const TokenGrid&, const TokenGrid&) = default;

 private:
  int64_t tokens_ = 0;
  int64_t frames_ = 0;
  int64_t height_ = 0;
  int64_t width_ = 0;
  TextPlace place_ = TextPlace::none;
  IndexRange text_;
  IndexRange video_;
  std::vector<int64_t> text_valid_;
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
