#include "cli/query_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/index_range.h"
#include "core/selection.h"

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

void add_query_options(CLI::App& command, QueryOptions& o, bool with_list) {
  const std::string group = "Queries";
  command
      .add_option("--query", o.coords,
                  "a video token by latent frame, row, column; a box with ranges: 5,0:30,10:12\n"
                  "(repeatable)")
      ->type_name("T,Y,X")
      ->allow_extra_args(false)
      ->group(group);
  command.add_option("--index", o.indices, "a token by its place in the sequence (repeatable)")
      ->type_name("N")
      ->allow_extra_args(false)
      ->group(group);
  if (with_list) {
    command.add_option("--queries", o.list, "tokens by their places in the sequence: 0,226-300")
        ->type_name("LIST")
        ->group(group);
  }
}

std::vector<int64_t> resolve_queries(const QueryOptions& o, const AttentionProblem& problem) {
  std::vector<int64_t> rows;
  const TokenGrid& grid = problem.query_tokens();
  for (const std::string& text : o.coords) {
    if (!grid.has_grid()) {
      throw usage_error(
          fmt::format("--query {}: {} has no token grid; give --grid TxHxW, or --index N", text,
                      problem.name()));
    }
    const auto box = parse_box(text, grid);
    for (int64_t t = box[0].begin; t < box[0].end; ++t) {
      for (int64_t y = box[1].begin; y < box[1].end; ++y) {
        for (int64_t x = box[2].begin; x < box[2].end; ++x) {
          rows.push_back(grid.index_of({t, y, x}));
        }
      }
    }
  }
  for (int64_t index : o.indices) {
    if (index < 0 || index >= problem.num_queries()) {
      throw usage_error(fmt::format("--index {}: outside the sequence of {} (valid 0 to {})", index,
                                    problem.name(), problem.num_queries() - 1));
    }
    rows.push_back(index);
  }
  if (!o.list.empty()) {
    const auto list = Selection::parse(o.list, "--queries").resolve_count(problem.num_queries());
    rows.insert(rows.end(), list.begin(), list.end());
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

std::optional<std::array<int64_t, 3>> single_query_coord(const QueryOptions& o,
                                                         const AttentionProblem& problem) {
  const auto rows = resolve_queries(o, problem);
  if (rows.size() != 1) return std::nullopt;
  const auto coord = problem.query_tokens().coord(rows.front());
  if (!coord) return std::nullopt;
  return std::array<int64_t, 3>{coord->t, coord->y, coord->x};
}

std::string describe_queries(const QueryOptions& o, int64_t count) {
  if (count != 1) return fmt::format("mean of {} queries", count);
  if (!o.coords.empty()) return "query " + o.coords.front();
  return "index " + (o.indices.empty() ? o.list : std::to_string(o.indices.front()));
}

}  // namespace attnscope
