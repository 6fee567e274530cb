#include "cli/common/query_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>

#include "core/base/error.h"
#include "core/base/index_range.h"
#include "core/base/selection.h"
#include "core/products/tokens/text_token.h"
#include "core/products/tokens/token_box.h"

namespace attnscope {
namespace {

/// The places of "NAME:PLACE": a position or box T,Y,X of a segment that has a grid, of one frame
/// Y,X too, or a token N or A:B of any segment.
std::vector<int64_t> segment_places(const std::string& text, size_t colon, const TokenGrid& grid) {
  const TokenSegment* segment = nullptr;
  try {
    segment = &grid.segment_named(text.substr(0, colon));
  } catch (const Error& error) {
    throw usage_error(fmt::format("--query {}: {}", text, error.what()));
  }
  std::string place = text.substr(colon + 1);
  std::vector<int64_t> places;
  const auto commas = std::count(place.begin(), place.end(), ',');
  if (commas == 0) {
    const IndexRange tokens = parse_box_axis(place, fmt::format("--query {} (token)", text),
                                             "segment", segment->tokens.size());
    for (int64_t i = tokens.begin; i < tokens.end; ++i) {
      places.push_back(segment->tokens.begin + i);
    }
    return places;
  }
  if (!segment->has_grid()) {
    throw usage_error(fmt::format("--query {}: segment {} has no grid; give {}:N, 0 to {}", text,
                                  segment->name, segment->name, segment->tokens.size() - 1));
  }
  if (commas == 1 && segment->grid[0] == 1) place.insert(0, "0,");
  each_position(parse_token_box(place, "--query", segment->grid), [&](LatentCoord at) {
    places.push_back(segment->tokens.begin + segment->token_at(at));
  });
  return places;
}

}  // namespace

void add_query_options(CommandParser& command, QueryOptions& o, bool with_list) {
  const std::string group = "Queries";
  command
      .add_option("--query", o.coords,
                  "a video token by latent frame, row, column; a box with ranges: 5,0:30,10:12;\n"
                  "of another segment of the token map NAME:T,Y,X or NAME:N (repeatable)")
      .type_name("T,Y,X")
      .one_value_each()
      .group(group);
  command
      .add_option("--at", o.pixels,
                  "the video token of a pixel of the decoded video, as frame=40,x=352,y=240\n"
                  "(repeatable; attnscope help tokens)")
      .type_name("PIXEL")
      .one_value_each()
      .group(group);
  command.add_option("--index", o.indices, "a token by its place in the sequence (repeatable)")
      .type_name("N")
      .one_value_each()
      .group(group);
  if (with_list) {
    command.add_option("--queries", o.list, "tokens by their places in the sequence: 0,226-300")
        .type_name("LIST")
        .group(group);
  }
}

void add_text_token_option(CommandParser& command, QueryOptions& o) {
  command
      .add_option(
          "--text-token", o.text_tokens,
          "a text token: its number within the text, A-B for several, or the word or phrase\n"
          "itself (repeatable)")
      .type_name("N|STRING")
      .one_value_each()
      .group("Queries");
}

namespace {

/// Where the colon behind a segment's name stands (no name has digits alone); npos: it is no name.
size_t name_end(const std::string& text) {
  const size_t colon = text.find(':');
  return text.find_first_not_of("0123456789,") < colon ? colon : std::string::npos;
}

/// The tokens of --query, --index and --queries, in their order.
std::vector<int64_t> listed_places(const QueryOptions& o, const TokenSequence& sequence) {
  // Else a command would leave out what was asked for, and say nothing.
  if (!o.pixels.empty()) throw std::logic_error("the pixels of --at were not settled");
  std::vector<int64_t> places;
  const TokenGrid& grid = sequence.grid;
  for (const std::string& text : o.coords) {
    if (const size_t colon = name_end(text); colon != std::string::npos) {
      const auto named = segment_places(text, colon, grid);
      places.insert(places.end(), named.begin(), named.end());
      continue;
    }
    if (!grid.has_grid()) {
      throw usage_error(grid.video_range().empty()
                            ? fmt::format("--query {}: {} is text; give --text-token N|STRING",
                                          text, sequence.name)
                            : fmt::format("--query {}: {} has no token grid; give --grid TxHxW, or "
                                          "--index N",
                                          text, sequence.name));
    }
    each_position(parse_token_box(text, "--query", {grid.frames(), grid.height(), grid.width()}),
                  [&](LatentCoord at) { places.push_back(grid.index_of(at)); });
  }
  for (int64_t index : o.indices) {
    if (index < 0 || index >= grid.tokens()) {
      throw usage_error(fmt::format("--index {}: outside the sequence of {} (valid 0 to {})", index,
                                    sequence.name, grid.tokens() - 1));
    }
    places.push_back(index);
  }
  if (!o.list.empty()) {
    const auto list = Selection::parse(o.list, "--queries").resolve_count(grid.tokens());
    places.insert(places.end(), list.begin(), list.end());
  }
  return places;
}

}  // namespace

std::vector<int64_t> resolve_queries(const QueryOptions& o, const AttentionProblem& problem) {
  const TokenGrid& grid = problem.query_tokens();
  return choose_tokens(listed_places(o, {grid, {}, problem.name()}), {}, grid).tokens;
}

ChosenTokens resolve_tokens(const QueryOptions& o, const TokenSequence& sequence) {
  std::vector<int64_t> places = listed_places(o, sequence);
  const int64_t text = sequence.grid.text_range().size();
  std::vector<IndexRange> words;
  for (const std::string& word : o.text_tokens) {
    const IndexRange pieces = resolve_text_token(word, {sequence.words, text, sequence.name});
    if (!is_token_number(word)) {
      words.push_back(pieces);
      continue;
    }
    for (int64_t i = pieces.begin; i < pieces.end; ++i) words.push_back({i, i + 1});
  }
  return choose_tokens(std::move(places), words, sequence.grid);
}

void tell_mixed_tokens(std::span<const int64_t> tokens, const TokenGrid& grid,
                       const Console& console) {
  const IndexRange text = grid.text_range();
  const auto words = std::count_if(tokens.begin(), tokens.end(),
                                   [&](int64_t token) { return text.contains(token); });
  const auto patches = std::ssize(tokens) - words;
  if (words == 0 || patches == 0) return;
  console.say(
      fmt::format("note: text tokens ({}) and patches ({}) are averaged together", words, patches));
}

namespace {

/// "6,15,22", with the pixel that chose it.
std::string coord_words(const QueryOptions& o, size_t number) {
  const size_t typed = o.coords.size() - o.pixel_words.size();
  const std::string& coord = o.coords[number];
  return number < typed ? coord : fmt::format("{} ({})", coord, o.pixel_words[number - typed]);
}

/// The first tokens as they were asked for: "6,15,22; text token dog; 4 more".
std::string asked_tokens(const QueryOptions& o) {
  constexpr size_t kNamed = 3;
  std::vector<std::string> asked;
  for (size_t i = 0; i < o.coords.size(); ++i) asked.push_back(coord_words(o, i));
  for (const int64_t index : o.indices) asked.push_back(fmt::format("index {}", index));
  if (!o.list.empty()) asked.push_back("index " + o.list);
  for (const std::string& text : o.text_tokens) asked.push_back("text token " + text);
  const size_t more = asked.size() > kNamed ? asked.size() - kNamed : 0;
  asked.resize(asked.size() - more);
  if (more > 0) asked.push_back(fmt::format("{} more", more));
  return fmt::format("{}", fmt::join(asked, "; "));
}

}  // namespace

std::string describe_chosen(const QueryOptions& o, const ChosenTokens& chosen, bool as_keys) {
  const std::string_view noun = as_keys ? "key" : "query";
  std::string text;
  if (chosen.items != 1) {
    const std::string_view nouns = as_keys ? "keys" : "queries";
    const auto count = as_keys ? chosen.items : static_cast<int64_t>(chosen.tokens.size());
    text = fmt::format("mean of {} {} ({})", count, nouns, asked_tokens(o));
  } else if (!o.text_tokens.empty()) {
    text = "text token " + o.text_tokens.front();
  } else if (!o.coords.empty()) {
    text = fmt::format("{} {}", noun, coord_words(o, 0));
  } else {
    text = "index " + (o.indices.empty() ? o.list : std::to_string(o.indices.front()));
  }
  return as_keys ? "attention to " + text : text;
}

}  // namespace attnscope
