#include "core/problem/token_grid.h"

#include <cassert>
#include <charconv>
#include <string_view>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

/// All of `text` as a number ≥ 0.
std::optional<int64_t> parse_count(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::string join_grid(const std::array<int64_t, 3>& grid) {
  return std::to_string(grid[0]) + "x" + std::to_string(grid[1]) + "x" + std::to_string(grid[2]);
}

/// `coordinate` names the axis as options do.
void check_coordinate(char coordinate, int64_t value, int64_t extent) {
  if (value >= 0 && value < extent) return;
  throw usage_error(std::string(1, coordinate) + " = " + std::to_string(value) +
                    " is outside the grid (valid: 0 to " + std::to_string(extent - 1) + ")");
}

}  // namespace

TokenGrid TokenGrid::unknown(int64_t tokens) {
  TokenGrid grid;
  grid.tokens_ = tokens;
  grid.video_ = {0, tokens};
  return grid;
}

TokenGrid TokenGrid::text_only(int64_t tokens) {
  TokenGrid grid;
  grid.tokens_ = tokens;
  grid.place_ = TextPlace::all;
  grid.text_ = {0, tokens};
  grid.video_ = {tokens, tokens};
  return grid;
}

TokenGrid TokenGrid::video(int64_t tokens, std::array<int64_t, 3> grid, int64_t text,
                           TextPlace place) {
  const auto cells = checked_count(grid);
  const auto total = cells ? checked_add(*cells, text) : std::nullopt;
  if (!total || *cells == 0) {
    throw usage_error("grid " + join_grid(grid) + " with " + std::to_string(text) +
                      " text tokens: the extents must be at least 1 and the text at least 0");
  }
  if (*total != tokens) {
    throw usage_error("grid " + join_grid(grid) + " with " + std::to_string(text) +
                      " text tokens has " + std::to_string(*total) +
                      " tokens, but the sequence has " + std::to_string(tokens));
  }
  if (place == TextPlace::all || (place == TextPlace::none && text != 0)) {
    throw usage_error("grid " + join_grid(grid) +
                      ": text beside a grid stands at the start or at the end");
  }
  TokenGrid result;
  result.tokens_ = tokens;
  result.frames_ = grid[0];
  result.height_ = grid[1];
  result.width_ = grid[2];
  result.place_ = text == 0 ? TextPlace::none : place;
  const bool at_end = result.place_ == TextPlace::end;
  result.text_ = at_end ? IndexRange{*cells, tokens} : IndexRange{0, text};
  result.video_ = at_end ? IndexRange{0, *cells} : IndexRange{text, tokens};
  return result;
}

TokenGrid TokenGrid::spans(int64_t tokens, int64_t text, TextPlace place) {
  if (text < 0 || text >= tokens || (place != TextPlace::start && place != TextPlace::end)) {
    throw usage_error(std::to_string(text) + " text tokens leave no video in a sequence of " +
                      std::to_string(tokens));
  }
  TokenGrid result = unknown(tokens);
  if (text == 0) return result;
  result.place_ = place;
  const bool at_end = place == TextPlace::end;
  result.text_ = at_end ? IndexRange{tokens - text, tokens} : IndexRange{0, text};
  result.video_ = at_end ? IndexRange{0, tokens - text} : IndexRange{text, tokens};
  return result;
}

void TokenGrid::set_text_valid(std::vector<int64_t> valid) {
  for (int64_t count : valid) {
    if (count >= 0 && count <= text_.size()) continue;
    throw usage_error("text_valid " + std::to_string(count) + ": expected 0 to " +
                      std::to_string(text_.size()) + ", the number of text tokens");
  }
  text_valid_ = std::move(valid);
}

Segment TokenGrid::segment(int64_t index, int64_t batch) const {
  assert(index >= 0 && index < tokens_);
  if (!text_.contains(index)) return Segment::video;
  if (text_valid_.empty()) return Segment::text;
  const auto item = text_valid_.size() == 1 ? size_t{0} : static_cast<size_t>(batch);
  assert(item < text_valid_.size());
  return index - text_.begin < text_valid_[item] ? Segment::text : Segment::padding;
}

std::optional<LatentCoord> TokenGrid::coord(int64_t index) const {
  if (!has_grid() || !video_.contains(index)) return std::nullopt;
  const int64_t cell = index - video_.begin;
  const int64_t row = cell / width_;
  return LatentCoord{row / height_, row % height_, cell % width_};
}

int64_t TokenGrid::index_of(LatentCoord coord) const {
  if (!has_grid()) throw usage_error("a position T,Y,X needs a token grid, and none is known");
  check_coordinate('T', coord.t, frames_);
  check_coordinate('Y', coord.y, height_);
  check_coordinate('X', coord.x, width_);
  return video_.begin + (coord.t * height_ + coord.y) * width_ + coord.x;
}

IndexRange TokenGrid::video_frames(int64_t t, const VideoGeometry& geometry) {
  if (t == 0) return {0, geometry.first_frames};
  const int64_t begin = geometry.first_frames + (t - 1) * geometry.frames;
  return {begin, begin + geometry.frames};
}

std::string TokenGrid::grid_text() const {
  return has_grid() ? join_grid({frames_, height_, width_}) : "none";
}

std::string TokenGrid::text_text() const {
  switch (place_) {
    case TextPlace::none:
      return "none";
    case TextPlace::all:
      return "all";
    case TextPlace::start:
      return std::to_string(text_.size()) + "@start";
    case TextPlace::end:
      return std::to_string(text_.size()) + "@end";
  }
  return "none";
}

std::array<int64_t, 3> parse_grid(const std::string& text) {
  const auto fail = [&] {
    return usage_error("grid " + text + ": expected TxHxW, each at least 1, for example 13x30x45");
  };
  std::array<int64_t, 3> grid{};
  std::string_view rest = text;
  for (size_t axis = 0; axis < 3; ++axis) {
    const size_t end = axis < 2 ? rest.find('x') : rest.size();
    if (end == std::string_view::npos) throw fail();
    const auto extent = parse_count(rest.substr(0, end));
    if (!extent || *extent < 1) throw fail();
    grid[axis] = *extent;
    rest.remove_prefix(axis < 2 ? end + 1 : end);
  }
  if (!checked_count(grid)) throw fail();
  return grid;
}

TextSpan parse_text_span(const std::string& text) {
  if (text == "none") return {0, TextPlace::none};
  if (text == "all") return {0, TextPlace::all};
  const size_t at = text.find('@');
  if (at != std::string::npos) {
    const auto count = parse_count(std::string_view(text).substr(0, at));
    const std::string place = text.substr(at + 1);
    if (count && place == "start") return {*count, TextPlace::start};
    if (count && place == "end") return {*count, TextPlace::end};
  }
  throw usage_error("text " + text + ": expected N@start, N@end, none or all");
}

}  // namespace attnscope
