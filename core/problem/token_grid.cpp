#include "core/problem/token_grid.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <string_view>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/nearest_word.h"

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

/// The first segments of text that follow each other at once.
IndexRange text_run(const std::vector<TokenSegment>& segments, size_t video) {
  IndexRange run;
  for (size_t i = 0; i < segments.size(); ++i) {
    const TokenSegment& segment = segments[i];
    const bool text = segment.modality == Modality::text && i != video;
    if (!text && !run.empty()) break;
    if (text) run = {run.empty() ? segment.tokens.begin : run.begin, segment.tokens.end};
  }
  return run;
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

size_t TokenGrid::main_segment(const std::vector<TokenSegment>& segments) {
  // A grid before none, video before pictures.
  for (const bool grid : {true, false}) {
    for (const Modality modality : {Modality::video, Modality::image}) {
      for (size_t i = 0; i < segments.size(); ++i) {
        if (segments[i].modality == modality && segments[i].has_grid() == grid) return i;
      }
    }
  }
  return segments.size();
}

TokenGrid TokenGrid::with_video(const std::string& segment) const {
  const TokenSegment& found = segment_named(segment);
  return of_segments(segments_, static_cast<size_t>(&found - segments_.data()));
}

TokenGrid TokenGrid::of_segments(std::vector<TokenSegment> segments, size_t main) {
  if (segments.empty() || segments.size() > kMaxSegments) {
    throw usage_error("a token map has 1 to " + std::to_string(kMaxSegments) + " segments (got " +
                      std::to_string(segments.size()) + ")");
  }
  TokenGrid result;
  for (const TokenSegment& segment : segments) {
    if (segment.tokens.begin != result.tokens_ || segment.tokens.empty()) {
      throw usage_error("segment " + segment.name + " does not begin where the one before it ends");
    }
    result.tokens_ = segment.tokens.end;
  }
  result.text_ = text_run(segments, main);
  result.video_ = {result.tokens_, result.tokens_};
  if (main < segments.size()) {
    result.video_ = segments[main].tokens;
    if (segments[main].is_raster()) {
      result.frames_ = segments[main].grid[0];
      result.height_ = segments[main].grid[1];
      result.width_ = segments[main].grid[2];
    }
  }
  auto named = static_cast<uint8_t>(Segment::first_named);
  for (size_t i = 0; i < segments.size(); ++i) {
    const Modality modality = segments[i].modality;
    result.classes_.push_back(i == main                       ? Segment::video
                              : modality == Modality::text    ? Segment::text
                              : modality == Modality::padding ? Segment::padding
                                                              : static_cast<Segment>(named++));
  }
  const IndexRange text = result.text_;
  const IndexRange video = result.video_;
  if (text.size() == result.tokens_) {
    result.place_ = TextPlace::all;
  } else if (!text.empty() && text.size() + video.size() == result.tokens_) {
    result.place_ = text.begin == 0 ? TextPlace::start : TextPlace::end;
  }
  result.segments_ = std::move(segments);
  return result;
}

size_t TokenGrid::segment_number(int64_t index) const {
  assert(has_map() && index >= 0 && index < tokens_);
  const auto past = std::upper_bound(
      segments_.begin(), segments_.end(), index,
      [](int64_t token, const TokenSegment& segment) { return token < segment.tokens.begin; });
  return static_cast<size_t>(past - segments_.begin()) - 1;
}

std::optional<int64_t> TokenGrid::position(int64_t index) const {
  if (!has_map()) return std::nullopt;
  const TokenSegment& segment = segments_[segment_number(index)];
  if (!segment.position) return std::nullopt;
  return *segment.position + index - segment.tokens.begin;
}

const TokenSegment& TokenGrid::segment_named(const std::string& name) const {
  std::vector<std::string> names;
  std::string list;
  for (const TokenSegment& segment : segments_) {
    if (segment.name == name) return segment;
    names.push_back(segment.name);
    list += (list.empty() ? "" : ", ") + segment.name;
  }
  const std::string nearest = nearest_word(name, names);
  throw usage_error("no segment is called " + one_line(name) +
                    (nearest.empty() ? "" : ", did you mean " + nearest + "?") +
                    (list.empty() ? " (no token map was recorded)" : " (there are " + list + ")"));
}

std::vector<TokenSegment> TokenGrid::other_segments() const {
  std::vector<TokenSegment> others;
  for (const TokenSegment& segment : segments_) {
    const int64_t first = segment.tokens.begin;
    if (!video_.contains(first) && !text_.contains(first)) others.push_back(segment);
  }
  return others;
}

std::vector<std::string> TokenGrid::named_segments() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (classes_[i] >= Segment::first_named) names.push_back(segments_[i].name);
  }
  return names;
}

bool TokenGrid::has_padding() const {
  if (!has_map()) return !text_valid_.empty();
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (classes_[i] == Segment::padding || segments_[i].has_padding()) return true;
  }
  return false;
}

int64_t TokenGrid::valid_items() const {
  if (!has_map()) return std::max<int64_t>(1, static_cast<int64_t>(text_valid_.size()));
  int64_t items = 1;
  for (const TokenSegment& segment : segments_) items = std::max(items, segment.valid_items());
  return items;
}

bool TokenGrid::same_padding(int64_t a, int64_t b) const {
  if (valid_items() == 1) return true;
  if (!has_map()) return text_valid_[static_cast<size_t>(a)] == text_valid_[static_cast<size_t>(b)];
  return std::all_of(segments_.begin(), segments_.end(), [&](const TokenSegment& segment) {
    if (segment.valid_items() == 1) return true;
    const auto of = [](const auto& items, int64_t item) -> const auto& {
      return items[static_cast<size_t>(item)];
    };
    return segment.valid_tokens ? of(*segment.valid_tokens, a) == of(*segment.valid_tokens, b)
                                : of(segment.valid, a) == of(segment.valid, b);
  });
}

bool TokenGrid::same_places(const TokenGrid& other) const {
  if (grid_text() != other.grid_text() || text_text() != other.text_text()) return false;
  const auto alike = [](const TokenSegment& a, const TokenSegment& b) {
    TokenSegment x = a, y = b;
    for (TokenSegment* each : {&x, &y}) {
      each->valid.clear();
      each->valid_tokens = nullptr;
    }
    return x == y;
  };
  return std::equal(segments_.begin(), segments_.end(), other.segments_.begin(),
                    other.segments_.end(), alike);
}

std::vector<IndexRange> TokenGrid::outside_video() const {
  if (video_.empty()) return {{0, tokens_}};
  std::vector<IndexRange> ranges;
  for (const IndexRange range : {IndexRange{0, video_.begin}, IndexRange{video_.end, tokens_}}) {
    if (!range.empty()) ranges.push_back(range);
  }
  return ranges;
}

std::string TokenGrid::place_text(int64_t index, int64_t batch) const {
  const auto written = [](LatentCoord c) {
    return "(" + std::to_string(c.t) + ", " + std::to_string(c.y) + ", " + std::to_string(c.x) +
           ")";
  };
  if (const auto place = coord(index)) return written(*place);
  const TokenSegment& segment = segments_[segment_number(index)];
  const int64_t token = index - segment.tokens.begin;
  const auto place = segment.coord(token);
  // A line of cells, such as sound, has their numbers.
  const bool line = segment.grid[1] == 1 && segment.grid[2] == 1;
  std::string text = segment.name + " ";
  text += !place ? std::to_string(token) : line ? std::to_string(place->t) : written(*place);
  if (segment.modality != Modality::padding && !segment.is_valid(token, batch)) text += " padding";
  return text;
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
  if (has_map()) {
    const size_t number = segment_number(index);
    const TokenSegment& segment = segments_[number];
    const bool valid = segment.is_valid(index - segment.tokens.begin, batch);
    return valid ? classes_[number] : Segment::padding;
  }
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

std::optional<LatentCoord> TokenGrid::any_coord(int64_t index) const {
  if (!has_map()) return coord(index);
  const TokenSegment& segment = segments_[segment_number(index)];
  return segment.coord(index - segment.tokens.begin);
}

int64_t TokenGrid::index_of(LatentCoord coord) const {
  if (!has_grid()) throw usage_error("a position T,Y,X needs a token grid, and none is known");
  check_inside(coord, {frames_, height_, width_});
  return video_.begin + (coord.t * height_ + coord.y) * width_ + coord.x;
}

IndexRange TokenGrid::video_frames(int64_t t, const VideoGeometry& geometry) {
  // How many latent frames before this one are as the first.
  const int64_t firsts =
      geometry.chunks > 0 ? (t + geometry.chunks - 1) / geometry.chunks : std::min<int64_t>(t, 1);
  const bool is_first = geometry.chunks > 0 ? t % geometry.chunks == 0 : t == 0;
  const int64_t begin = firsts * geometry.first_frames + (t - firsts) * geometry.frames;
  return {begin, begin + (is_first ? geometry.first_frames : geometry.frames)};
}

std::string TokenGrid::grid_text() const {
  const bool all = text_.size() + video_.size() == tokens_;
  return has_grid() && all ? join_grid({frames_, height_, width_}) : "none";
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
