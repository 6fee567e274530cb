#include "cli/common/query_options.h"

#include <fmt/core.h>

#include <charconv>

#include "core/base/error.h"
#include "core/base/index_range.h"
#include "core/base/selection.h"
#include "core/products/text_token.h"

namespace attnscope {
namespace {

/// One axis of a box: `N` or `A:B` (half-open).
IndexRange parse_axis(const std::string& part, const std::string& whole, const char* axis,
                      int64_t extent) {
  const std::string option = fmt::format("--query {} ({})", whole, axis);
  if (part.find(':') != std::string::npos) return parse_crop(part, option, extent);
  int64_t value = 0;
  const char* end = part.data() + part.size();
  const auto [stop, error] = std::from_chars(part.data(), end, value);
  if (error != std::errc() || stop != end || part.empty()) {
    throw usage_error(fmt::format("{}: \"{}\" is no number or range A:B", option, part));
  }
  if (value < 0 || value >= extent) {
    throw usage_error(
        fmt::format("{}: outside the grid (got {}, valid 0 to {})", option, value, extent - 1));
  }
  return {value, value + 1};
}

std::array<IndexRange, 3> parse_box(const std::string& text, const TokenGrid& grid) {
  std::array<std::string, 3> parts;
  size_t begin = 0;
  for (size_t i = 0; i < 3; ++i) {
    const size_t comma = text.find(',', begin);
    if ((comma == std::string::npos) != (i == 2)) {
      throw usage_error(fmt::format("--query {}: expected T,Y,X (each a number or A:B)", text));
    }
    parts[i] = text.substr(begin, comma == std::string::npos ? comma : comma - begin);
    begin = comma + 1;
  }
  return {parse_axis(parts[0], text, "T", grid.frames()),
          parse_axis(parts[1], text, "Y", grid.height()),
          parse_axis(parts[2], text, "X", grid.width())};
}

}  // namespace

void add_query_options(CommandParser& command, QueryOptions& o, bool with_list) {
  const std::string group = "Queries";
  command
      .add_option("--query", o.coords,
                  "a video token by latent frame, row, column; a box with ranges: 5,0:30,10:12\n"
                  "(repeatable)")
      .type_name("T,Y,X")
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

/// The tokens of --query, --index and --queries, in their order.
std::vector<int64_t> listed_places(const QueryOptions& o, const TokenSequence& sequence) {
  std::vector<int64_t> places;
  const TokenGrid& grid = sequence.grid;
  for (const std::string& text : o.coords) {
    if (!grid.has_grid()) {
      throw usage_error(grid.video_range().empty()
                            ? fmt::format("--query {}: {} is text; give --text-token N|STRING",
                                          text, sequence.name)
                            : fmt::format("--query {}: {} has no token grid; give --grid TxHxW, or "
                                          "--index N",
                                          text, sequence.name));
    }
    const auto box = parse_box(text, grid);
    for (int64_t t = box[0].begin; t < box[0].end; ++t) {
      for (int64_t y = box[1].begin; y < box[1].end; ++y) {
        for (int64_t x = box[2].begin; x < box[2].end; ++x) {
          places.push_back(grid.index_of({t, y, x}));
        }
      }
    }
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
    words.push_back(resolve_text_token(word, {sequence.words, text, sequence.name}));
  }
  return choose_tokens(std::move(places), words, sequence.grid);
}

std::string describe_chosen(const QueryOptions& o, const ChosenTokens& chosen, bool as_keys) {
  const std::string_view noun = as_keys ? "key" : "query";
  std::string text;
  if (chosen.items != 1) {
    const std::string_view nouns = as_keys ? "keys" : "queries";
    const auto count = as_keys ? chosen.items : static_cast<int64_t>(chosen.tokens.size());
    text = fmt::format("mean of {} {}", count, nouns);
  } else if (!o.text_tokens.empty()) {
    text = "text token " + o.text_tokens.front();
  } else if (!o.coords.empty()) {
    text = fmt::format("{} {}", noun, o.coords.front());
  } else {
    text = "index " + (o.indices.empty() ? o.list : std::to_string(o.indices.front()));
  }
  return as_keys ? "attention to " + text : text;
}

}  // namespace attnscope
