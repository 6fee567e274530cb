#include "cli/diff/compared_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "core/problem/sampled_rows.h"
#include "core/problem/score.h"

namespace attnscope {
namespace {

std::string size_text(const SideHead& head) {
  return fmt::format("{} has {} queries and {} keys", head.label, head.query_tokens->tokens(),
                     head.key_tokens->tokens());
}

/// True where a file tells the full lengths of its head's sequences, beyond what it has of them.
bool tells_size(const SideHead& head) {
  return head.call != nullptr || (head.query_tokens->has_grid() && head.key_tokens->has_grid()) ||
         head.query_tokens->has_map() || head.key_tokens->has_map();
}

/// The sizes of a head's map, as far as they are known beside the other's.
struct MapSize {
  int64_t queries = 0, keys = 0;
  friend bool operator==(const MapSize&, const MapSize&) = default;
};
MapSize size_of(const SideHead& head, const SideHead& other) {
  const MapSize own{head.query_tokens->tokens(), head.key_tokens->tokens()};
  if (tells_size(head) || other.call == nullptr) return own;
  // The capture on the other side tells the lengths, unless the file has more tokens than it.
  return {std::max(own.queries, other.query_tokens->tokens()),
          std::max(own.keys, other.key_tokens->tokens())};
}

void check_scores(const SideHead& a, const SideHead& b) {
  // A capture has logits as well, where the score has.
  const bool mixed = a.call == nullptr && b.call == nullptr && a.logits != b.logits;
  if (mixed) {
    throw usage_error(fmt::format("logits and weights cannot be compared: {} has {}, {} {}",
                                  a.label, a.logits ? "logits" : "weights", b.label,
                                  b.logits ? "logits" : "weights"));
  }
  const bool logits = a.logits || b.logits;
  const auto is_softmax_of = [](const SideHead& side) {
    const auto score = parse_score(side.score);
    return score && is_softmax(*score);
  };
  const bool softmax = is_softmax_of(a) && is_softmax_of(b);
  if (!logits && a.score != b.score && !softmax) {
    throw usage_error(fmt::format("weights of different scores cannot be compared: {} is {}, {} {}",
                                  a.label, one_line(a.score), b.label, one_line(b.score)));
  }
  for (const SideHead* const head : {&a, &b}) {
    if (!logits || head->call == nullptr || !is_linear(head->problem()->score())) continue;
    throw usage_error(
        fmt::format("{}: linear scores have no logits to compare with those of the "
                    "export",
                    head->label));
  }
}

std::vector<int64_t> rows_of(const SideHead& head) {
  if (head.facts != nullptr) return head.facts->queries;
  std::vector<int64_t> rows(static_cast<size_t>(head.query_tokens->tokens()));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return rows;
}

std::vector<int64_t> in_both(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

/// The cut of maps whose tokens are the same.
void cut_same(ComparedPair& pair, const DiffCut& cut) {
  const SideHead &a = pair.a, &b = pair.b;
  pair.map_queries = size_of(a, b).queries;
  pair.map_keys = size_of(a, b).keys;
  const int64_t all = pair.map_queries;
  std::vector<int64_t> queries;
  if (pair.of_exports()) {
    queries = in_both(rows_of(a), rows_of(b));
    if (cut.sample > 0 && cut.sample < all)
      queries = in_both(queries, sampled_rows(all, cut.sample));
  } else if (cut.sample > 0 && cut.sample < all) {
    queries = sampled_rows(all, cut.sample);
  }
  pair.keys = intersect(a.keys, b.keys);
  if ((pair.of_exports() && queries.empty()) || pair.keys.empty()) {
    throw usage_error(fmt::format("{} and {} have no {}row and key in common", a.label, b.label,
                                  cut.sample > 0 ? "sampled " : ""));
  }
  if (std::ssize(queries) == all) queries.clear();
  pair.rows = queries.empty() ? all : std::ssize(queries);
  pair.whole = pair.keys == IndexRange{0, pair.map_keys};
  const QueryList list = queries.empty() ? nullptr : shared_list(std::move(queries), nullptr);
  pair.cut_a = pair.cut_b = {list, {pair.keys}, pair.logits};
}

/// A segment of both maps, by its places in each.
struct CommonSegment {
  std::string name;
  IndexRange a, b;
};

/// "13x30x45" of a video whose cells have places; "" of other segments.
std::string segment_grid(const TokenGrid& tokens, const SequencePart& part) {
  if (tokens.has_map()) {
    const TokenSegment& segment = tokens.segment_named(part.name);
    if (!segment.has_grid()) return "";
    return fmt::format("{}x{}x{}{}", segment.grid[0], segment.grid[1], segment.grid[2],
                       segment.is_raster() ? "" : " in another order");
  }
  if (part.name != "video" || !tokens.has_grid()) return "";
  return fmt::format("{}x{}x{}", tokens.frames(), tokens.height(), tokens.width());
}

std::vector<CommonSegment> common_segments(const TokenGrid& a, const TokenGrid& b) {
  std::vector<CommonSegment> common;
  const auto of_b = sequence_segments(b);
  for (const SequencePart& part : sequence_segments(a)) {
    for (const SequencePart& other : of_b) {
      const bool same = part.name == other.name && part.tokens.size() == other.tokens.size() &&
                        segment_grid(a, part) == segment_grid(b, other);
      if (same) common.push_back({part.name, part.tokens, other.tokens});
    }
  }
  return common;
}

/// "text 226, video 13x30x45".
std::string tokens_text(const TokenGrid& tokens) {
  std::string text;
  for (const SequencePart& part : sequence_segments(tokens)) {
    const std::string grid = segment_grid(tokens, part);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", one_line(part.name),
                        grid.empty() ? std::to_string(part.tokens.size()) : grid);
  }
  return text;
}

/// True where both sequences say what their tokens are: by a grid, a token map or a text range.
bool are_known(const TokenGrid& a, const TokenGrid& b) {
  const auto known = [](const TokenGrid& tokens) {
    return tokens.has_grid() || tokens.has_map() || !tokens.text_range().empty();
  };
  return known(a) && known(b);
}

std::vector<int64_t> indices_of(const std::vector<IndexRange>& ranges) {
  std::vector<int64_t> indices;
  for (const IndexRange range : ranges) {
    for (int64_t i = range.begin; i < range.end; ++i) indices.push_back(i);
  }
  return indices;
}

/// The parts as they follow each other among what is compared.
std::vector<SequencePart> parts_of(const std::vector<CommonSegment>& segments) {
  std::vector<SequencePart> parts;
  int64_t first = 0;
  for (const CommonSegment& segment : segments) {
    parts.push_back({segment.name, {first, first + segment.a.size()}});
    first += segment.a.size();
  }
  return parts;
}

std::vector<IndexRange> ranges_of(const std::vector<CommonSegment>& segments,
                                  IndexRange CommonSegment::*side) {
  std::vector<IndexRange> ranges;
  for (const CommonSegment& segment : segments) ranges.push_back(segment.*side);
  return ranges;
}

/// True where B's segments stand in the order of A's.
bool ascend(const std::vector<CommonSegment>& segments) {
  return std::is_sorted(
      segments.begin(), segments.end(),
      [](const CommonSegment& x, const CommonSegment& y) { return x.b.begin < y.b.begin; });
}

/// The cut of maps whose tokens differ: those of the segments that both have.
void cut_segments(ComparedPair& pair, const DiffCut& cut) {
  const SideHead &a = pair.a, &b = pair.b;
  const auto queries = common_segments(*a.query_tokens, *b.query_tokens);
  const auto keys = common_segments(*a.key_tokens, *b.key_tokens);
  if (queries.empty() || keys.empty()) {
    const bool of_keys = !queries.empty();
    throw usage_error(
        fmt::format("maps of different tokens have no segment of {} in common: {} has {}, {} {}",
                    of_keys ? "keys" : "queries", a.label,
                    tokens_text(of_keys ? *a.key_tokens : *a.query_tokens), b.label,
                    tokens_text(of_keys ? *b.key_tokens : *b.query_tokens)));
  }
  if (!ascend(queries) || !ascend(keys)) {
    throw usage_error(
        fmt::format("the segments of {} stand in another order than those of {}: {}; {}", a.label,
                    b.label, tokens_text(*a.key_tokens), tokens_text(*b.key_tokens)));
  }
  if (pair.of_exports()) {
    throw usage_error(
        fmt::format("{} and {} have different tokens ({}; {}): only captures are "
                    "compared segment by segment",
                    a.label, b.label, tokens_text(*a.key_tokens), tokens_text(*b.key_tokens)));
  }
  if (cut.sample > 0) {
    throw usage_error(fmt::format("--sample: {} and {} are compared segment by segment, all rows",
                                  a.label, b.label));
  }
  pair.query_parts = parts_of(queries);
  pair.key_parts = parts_of(keys);
  pair.cut_a = {shared_list(indices_of(ranges_of(queries, &CommonSegment::a)), nullptr),
                ranges_of(keys, &CommonSegment::a), false};
  pair.cut_b = {shared_list(indices_of(ranges_of(queries, &CommonSegment::b)), nullptr),
                ranges_of(keys, &CommonSegment::b), false};
  pair.rows = std::ssize(*pair.cut_a.list);
  pair.keys = {0, pair.key_parts.back().tokens.end};
  pair.whole = false;
}

}  // namespace

ComparedPair compared_pair(const SideHead& a, const SideHead& b, const DiffCut& cut) {
  ComparedPair pair;
  pair.a = a;
  pair.b = b;
  check_scores(a, b);
  pair.logits = a.logits || b.logits;
  const auto score = parse_score(a.score);
  pair.sinks = a.sinks || b.sinks;
  pair.normalised = !pair.logits && score && is_normalised(*score) && !pair.sinks;
  const bool known =
      are_known(*a.query_tokens, *b.query_tokens) && are_known(*a.key_tokens, *b.key_tokens);
  const bool same_size = size_of(a, b) == size_of(b, a);
  const bool other_places = known && tells_size(a) && tells_size(b) &&
                            (tokens_text(*a.query_tokens) != tokens_text(*b.query_tokens) ||
                             tokens_text(*a.key_tokens) != tokens_text(*b.key_tokens));
  if (!same_size && !known) {
    throw usage_error(fmt::format(
        "maps of different sizes cannot be compared: {}, {}{}", size_text(a), size_text(b),
        tells_size(a) && tells_size(b) ? "" : " (as far as files without a token grid tell)"));
  }
  if (!same_size || other_places || cut.by_segment) {
    if (cut.by_segment && !known) {
      throw usage_error(
          fmt::format("--segments: {} and {} do not both say which of their tokens "
                      "are what; give --grid and --text",
                      a.label, b.label));
    }
    cut_segments(pair, cut);
  } else {
    cut_same(pair, cut);
  }
  return pair;
}

namespace {

void share_lists(const ComparedPair& before, ComparedPair& pair) {
  for (const auto side : {&ComparedPair::cut_a, &ComparedPair::cut_b}) {
    QueryList& list = (pair.*side).list;
    if (list) list = shared_list(*list, (before.*side).list);
  }
}

}  // namespace

std::vector<ComparedPair> compared_pairs(const DiffSides& sides, const SelectionOptions& selection,
                                         const OtherValues& other, const DiffCut& cut,
                                         const Console& console) {
  std::vector<ComparedPair> pairs;
  for (const auto& [a, b] : pair_heads(sides.a.selected(selection, console),
                                       OtherHeads(sides.b.heads(), sides.b.path().string()), other,
                                       &sides.a == &sides.b)) {
    ComparedPair pair = compared_pair(sides.a.head(a), sides.b.head(b), cut);
    if (!pairs.empty()) share_lists(pairs.back(), pair);
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

OpenedPair::OpenedPair(const DiffSides& sides, const ComparedPair& pair)
    : a(sides.a.open(pair.a, pair.cut_a, sides.backend, nullptr)),
      b(sides.b.open(pair.b, pair.cut_b, sides.backend, a.get())) {}

std::vector<HeadTask> tasks_of(const std::vector<ComparedPair>& pairs) {
  std::vector<HeadTask> all;
  std::set<std::tuple<const AttentionProblem*, int64_t, int64_t>> named;
  const auto add = [&](const SideHead& head, const SideCut& cut) {
    const AttentionProblem* const problem = head.problem();
    if (problem == nullptr) return;
    if (!named.emplace(problem, head.name.batch, head.name.head).second) return;
    all.push_back({problem,
                   head.name.batch,
                   head.name.head,
                   {0, problem->num_queries()},
                   cut.queries(),
                   {0, problem->num_keys()}});
  };
  for (const ComparedPair& pair : pairs) {
    add(pair.a, pair.cut_a);
    add(pair.b, pair.cut_b);
  }
  return all;
}

}  // namespace attnscope
