#include "viewer/view/query_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/products/tokens/text_token.h"
#include "core/products/tokens/token_box.h"
#include "core/products/tokens/token_piece.h"
#include "viewer/view/maps/map_source.h"

namespace attnscope {
namespace {

/// A token string without the marks of its tokenizer. One that is nothing but marks stays as it is.
std::string_view plain_word(std::string_view token) {
  const std::string_view word = token_piece(token).text;
  return word.empty() ? token : word;
}

/// `token` as its place within the text, or the place in the sequence where it is not text.
int64_t text_number(const TokenGrid& grid, int64_t token) {
  return token - grid.text_range().begin;
}

/// True where a token map tells more of a token than that it is text, or video with a grid.
bool is_named(const TokenGrid& grid, int64_t token) {
  return grid.has_map() && !grid.coord(token) && !grid.text_range().contains(token);
}

}  // namespace

TokenNames TokenNames::of(const MapSource& call, int64_t batch, bool keys) {
  TokenNames names;
  names.grid = keys ? &call.keys : &call.queries;
  names.batch = batch;
  names.where = call.name;
  names.words = words_of(call.tokens, batch);
  return names;
}

std::vector<std::string> film_segments(const TokenGrid& grid) {
  std::vector<std::string> names;
  for (const TokenSegment& segment : grid.segments()) {
    if (segment.is_raster()) names.push_back(segment.name);
  }
  return names;
}

TokenGrid filmed(const TokenGrid& grid, const std::string& segment) {
  const std::vector<std::string> names = film_segments(grid);
  const bool there = std::find(names.begin(), names.end(), segment) != names.end();
  return there ? grid.with_video(segment) : grid;
}

void check_film_segment(const TokenGrid& grid, const std::string& segment) {
  const std::vector<std::string> names = film_segments(grid);
  if (segment.empty() || std::find(names.begin(), names.end(), segment) != names.end()) return;
  const std::string nearest = nearest_word(segment, names);
  throw usage_error(fmt::format(
      "segment {}: no such grid{} ({})", one_line(segment),
      nearest.empty() ? "" : ", did you mean " + nearest + "?",
      names.empty() ? "no token map was recorded" : fmt::format("{}", fmt::join(names, ", "))));
}

ChosenQuery query_at(const TokenNames& names, LatentCoord place) {
  const TokenGrid& grid = *names.grid;
  const std::string word = fmt::format("query {} {} {}: ", place.t, place.y, place.x);
  if (!grid.has_grid()) {
    throw usage_error(word + (grid.video_range().empty()
                                  ? fmt::format("{} is text there; take query text N", names.where)
                                  : fmt::format("{} has no token grid", names.where)));
  }
  const bool inside = place.t >= 0 && place.t < grid.frames() && place.y >= 0 &&
                      place.y < grid.height() && place.x >= 0 && place.x < grid.width();
  if (!inside) {
    throw usage_error(fmt::format("{}outside the grid of {} (valid 0 0 0 to {} {} {})", word,
                                  names.where, grid.frames() - 1, grid.height() - 1,
                                  grid.width() - 1));
  }
  return {{grid.index_of(place)}};
}

ChosenQuery query_box(const TokenNames& names, const std::string& box, const std::string& what) {
  const TokenGrid& grid = *names.grid;
  if (!grid.has_grid()) {
    throw usage_error(fmt::format("{} {}: {} has no token grid", what, box, names.where));
  }
  ChosenQuery chosen;
  each_position(parse_token_box(box, what, {grid.frames(), grid.height(), grid.width()}),
                [&](LatentCoord at) { chosen.tokens.push_back(grid.index_of(at)); });
  return chosen;
}

ChosenQuery query_text(const TokenNames& names, int64_t number) {
  const IndexRange text = names.grid->text_range();
  const std::string word = fmt::format("query text {}: ", number);
  if (text.empty())
    throw usage_error(word + std::string(names.where) + " has no text tokens there");
  if (number < 0 || number >= text.size()) {
    throw usage_error(fmt::format("{}outside the text of {} (valid 0 to {})", word, names.where,
                                  text.size() - 1));
  }
  return {{text.begin + number}};
}

std::string token_text(const TokenNames& names, int64_t token) {
  const TokenGrid& grid = *names.grid;
  if (is_named(grid, token)) return grid.place_text(token, names.batch);
  if (grid.segment(token, names.batch) == Segment::video) {
    const auto place = grid.coord(token);
    return place ? fmt::format("({}, {}, {})", place->t, place->y, place->x)
                 : fmt::format("token {}", token);
  }
  const int64_t number = text_number(grid, token);
  if (grid.segment(token, names.batch) == Segment::padding)
    return fmt::format("padding {}", number);
  if (number >= static_cast<int64_t>(names.words.size())) return fmt::format("text {}", number);
  return fmt::format("text {} «{}»", number,
                     one_line(plain_word(names.words[static_cast<size_t>(number)])));
}

std::string query_words(const TokenNames& names, const std::optional<ChosenQuery>& query) {
  if (!query || query->tokens.empty()) return "none";
  const TokenGrid& grid = *names.grid;
  if (query->tokens.size() > 1) return fmt::format("mean of {}", query->tokens.size());
  const int64_t token = query->tokens.front();
  if (is_named(grid, token)) return grid.place_text(token, names.batch);
  if (grid.segment(token, names.batch) != Segment::video) {
    return fmt::format("text {}", text_number(grid, token));
  }
  const auto place = grid.coord(token);
  return place ? fmt::format("{} {} {}", place->t, place->y, place->x)
               : fmt::format("token {}", token);
}

std::string pair_text(const TokenNames& queries, int64_t query, const TokenNames& keys,
                      int64_t key) {
  const auto side = [](char letter, const std::string& text) {
    return text.front() == '(' ? letter + text : fmt::format("{} {}", letter, text);
  };
  return side('q', token_text(queries, query)) + " → " + side('k', token_text(keys, key));
}

}  // namespace attnscope
