#include "viewer/remote/wire_values.h"

#include <algorithm>
#include <iterator>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

/// Which segment of a token map is its `video`; empty: none.
std::string video_segment(const TokenGrid& tokens) {
  const std::vector<TokenSegment>& segments = tokens.segments();
  for (size_t i = 0; i < segments.size(); ++i) {
    if (tokens.class_of(i) == Segment::video) return segments[i].name;
  }
  return "";
}

/// A map that has no segments, from what it is told by.
TokenGrid short_form(int64_t tokens, const std::array<int64_t, 3>& grid, TextPlace place,
                     int64_t text) {
  if (grid[0] > 0) return TokenGrid::video(tokens, grid, text, place);
  if (place == TextPlace::all) return TokenGrid::text_only(tokens);
  if (place == TextPlace::none) return TokenGrid::unknown(tokens);
  return TokenGrid::spans(tokens, text, place);
}

/// The longest sequence that is believed.
constexpr int64_t kMostTokens = int64_t{1} << 31;

/// Checks a segment that came as readers of files check theirs. Throws Error(file).
void check_segment(const TokenSegment& segment) {
  const IndexRange range = segment.tokens;
  if (range.begin < 0 || range.begin >= range.end || range.end > kMostTokens) {
    fail_wire("a segment of no tokens");
  }
  const int64_t tokens = range.size();
  const auto outside = [](const std::array<int64_t, 3>& three, int64_t least) {
    return std::any_of(three.begin(), three.end(),
                       [&](int64_t n) { return n < least || n > kMostTokens; });
  };
  const bool has_grid = segment.grid != std::array<int64_t, 3>{};
  const auto cells = has_grid ? checked_count(segment.grid) : std::nullopt;
  if (outside(segment.grid, has_grid ? 1 : 0) || (has_grid && (!cells || *cells != tokens)) ||
      outside(segment.cell, 0) || segment.first_frame < 0 ||
      outside(segment.tile, segment.order == CellOrder::tiles ? 1 : 0)) {
    fail_wire("a segment with no such grid");
  }
  if (segment.cells) {
    const bool fits = std::ssize(*segment.cells) == tokens &&
                      std::all_of(segment.cells->begin(), segment.cells->end(),
                                  [&](int32_t cell) { return cell >= 0 && cell < tokens; });
    if (!fits) fail_wire("a segment of other cells");
  }
  for (const int64_t count : segment.valid) {
    if (count < 0 || count > tokens) fail_wire("a segment with the padding of another");
  }
  if (!segment.valid_tokens) return;
  if (segment.valid_tokens->empty()) fail_wire("a segment with the padding of no batch item");
  for (const auto& item : *segment.valid_tokens) {
    if (std::ssize(item) != tokens) fail_wire("a segment with the padding of another");
  }
}

TokenGrid of_segments(std::vector<TokenSegment> segments, const std::string& video) {
  for (const TokenSegment& segment : segments) check_segment(segment);
  TokenGrid read = TokenGrid::of_segments(std::move(segments));
  return video.empty() || video == video_segment(read) ? read : read.with_video(video);
}

template <size_t Kind = 0>
void read_ask(WireReader& wire, size_t kind, Ask& ask) {
  if constexpr (Kind < kAskKinds) {
    if (kind != Kind) return read_ask<Kind + 1>(wire, kind, ask);
    wire(ask.emplace<Kind>());
  } else {
    fail_wire("an ask of no such kind");
  }
}

}  // namespace

void carry(WireWriter& wire, const Ask& ask) {
  wire(ask.index());
  std::visit([&](const auto& asked) { wire(asked); }, ask);
}

void carry(WireReader& wire, Ask& ask) {
  uint64_t kind = 0;
  wire(kind);
  read_ask(wire, kind, ask);
}

void carry(WireWriter& wire, const TokenGrid& tokens) {
  wire(tokens.has_map());
  if (tokens.has_map()) {
    wire(tokens.segments(), video_segment(tokens));
    return;
  }
  const std::array<int64_t, 3> grid{tokens.frames(), tokens.height(), tokens.width()};
  wire(tokens.tokens(), grid);
  wire.choice(tokens.text_place(), TextPlace::all);
  wire(tokens.text_range().size(), tokens.text_valid());
}

void carry(WireReader& wire, TokenGrid& tokens) {
  bool has_map = false;
  wire(has_map);
  try {
    if (has_map) {
      std::vector<TokenSegment> segments;
      std::string video;
      wire(segments, video);
      tokens = of_segments(std::move(segments), video);
      return;
    }
    int64_t count = 0, text = 0;
    std::array<int64_t, 3> grid{};
    TextPlace place{};
    std::vector<int64_t> valid;
    wire(count, grid);
    wire.choice(place, TextPlace::all);
    wire(text, valid);
    if (count < 0 || count > kMostTokens) fail_wire("a sequence of no such length");
    tokens = short_form(count, grid, place, text);
    if (!valid.empty()) tokens.set_text_valid(std::move(valid));
  } catch (const Error& e) {
    if (e.code() == ErrorCode::file) throw;
    fail_wire(std::string("a sequence that cannot be: ") + e.what());
  }
}

}  // namespace attnscope
