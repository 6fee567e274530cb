#include "core/products/differences/head_difference.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/maps/computed_map.h"
#include "core/products/differences/difference_sinks.h"

namespace attnscope {
namespace {

const AttentionProblem& problem_of(const HeadTask& task) { return *task.problem; }

/// Both sides, over all keys.
struct ComputedPair {
  ComputedPair(const HeadPair& pair, const TileBackend& backend)
      : a(pair.a, entries_of(pair.a), backend), b(pair.b, entries_of(pair.b), backend, &a) {}
  static ChosenEntries entries_of(const HeadTask& task) {
    return {{{0, problem_of(task).num_keys()}}, Quantity::weights};
  }
  ComputedMap a, b;
};

RowNumbers row_numbers(const HeadPair& pair) {
  return RowNumbers({problem_of(pair.a).rows_add_up() && problem_of(pair.b).rows_add_up(), true});
}

std::string map_size_text(const AttentionProblem& problem) {
  return problem.name() + " has " + std::to_string(problem.num_queries()) + " queries and " +
         std::to_string(problem.num_keys()) + " keys";
}

}  // namespace

void check_comparable(const AttentionProblem& a, const AttentionProblem& b) {
  if (a.num_queries() != b.num_queries() || a.num_keys() != b.num_keys()) {
    throw usage_error("maps of different sizes cannot be compared: " + map_size_text(a) + ", " +
                      map_size_text(b));
  }
  const bool softmax = is_softmax(a.score()) && is_softmax(b.score());
  if (a.score() != b.score() && !softmax) {
    throw usage_error("weights of different scores cannot be compared: " + a.name() + " is " +
                      score_name(a.score()) + ", " + b.name() + " " + score_name(b.score()));
  }
}

DifferencePlan plan_difference(const HeadPair& pair, const TileBackend& backend,
                               const MemoryRoom& room, int max_workers) {
  const ComputedPair sides(pair, backend);
  return plan_pair(sides.a, sides.b, row_numbers(pair), room,
                   max_workers > 0 ? max_workers : backend.workers());
}

std::optional<std::vector<RowDifference>> compare_heads(const HeadPair& pair,
                                                        const DifferencePlan& plan,
                                                        const TileBackend& backend,
                                                        MemoryBudget& budget,
                                                        const StreamControl& control) {
  check_comparable(problem_of(pair.a), problem_of(pair.b));
  ComputedPair sides(pair, backend);
  RowNumbers numbers = row_numbers(pair);
  if (!stream_pair(sides.a, sides.b, numbers, plan, budget, control)) return std::nullopt;
  return numbers.take();
}

std::vector<int64_t> ranked_rows(std::span<const double> divergence, size_t most) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < divergence.size(); ++i) {
    if (!std::isnan(divergence[i])) order.push_back(static_cast<int64_t>(i));
  }
  const auto count = static_cast<std::ptrdiff_t>(std::min(most, order.size()));
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int64_t a, int64_t b) {
    const double x = divergence[static_cast<size_t>(a)], y = divergence[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  });
  order.resize(static_cast<size_t>(count));
  return order;
}

namespace {

/// Whole maps are divided by rows, then by keys, so that they have the bits that they always had.
double mean_of_entries(double sum, const HeadDifference& head, int64_t keys) {
  const auto at_least_one = [](int64_t count) {
    return static_cast<double>(std::max<int64_t>(1, count));
  };
  if (head.entries < head.entries_of) return sum / at_least_one(head.entries);
  return sum / at_least_one(head.rows) / static_cast<double>(keys);
}

}  // namespace

HeadDifference summarise_rows(const ComparedRows& of, std::span<const RowDifference> rows,
                              int64_t top) {
  HeadDifference head;
  head.rows = std::ssize(rows);
  head.rows_of = of.rows_of;
  head.entries_of = head.rows * of.keys;
  double sum = 0, whole_sum = 0, divergences = 0, entropies = 0, cosines = 0, lses = 0;
  int64_t whole = 0, compared = 0, with_cosine = 0, with_lse = 0;
  std::vector<double> divergence;
  for (int64_t i = 0; i < head.rows; ++i) {
    const RowDifference& row = rows[static_cast<size_t>(i)];
    const bool is_whole = row.entries == of.keys;
    sum += row.sum_abs;
    head.entries += row.entries;
    if (is_whole) {
      ++whole;
      whole_sum += row.sum_abs;
    }
    if (i == 0 || row.max_abs > head.max_abs) {
      head.max_abs = row.max_abs;
      head.max_row = of.query_at(i);
      head.max_key = of.first_key + row.max_key;
    }
    divergence.push_back(row.divergence);
    if (!std::isnan(row.divergence)) {
      ++compared;
      divergences += row.divergence;
      entropies += row.entropy;
    } else if (of.normalised && is_whole) {
      ++head.masked_rows;
    }
    if (!std::isnan(row.cosine)) {
      ++with_cosine;
      cosines += row.cosine;
    }
    if (std::isnan(row.lse)) continue;
    ++with_lse;
    lses += row.lse;
    if (!head.lse_max_abs || std::abs(row.lse) > *head.lse_max_abs) {
      head.lse_max_abs = std::abs(row.lse);
      head.lse_row = of.query_at(i);
    }
  }
  head.mean_abs = mean_of_entries(sum, head, of.keys);
  if (whole > 0 && of.weights && !of.sinks)
    head.total_variation = whole_sum / static_cast<double>(whole) / 2;
  if (with_cosine > 0) head.cosine_mean = cosines / static_cast<double>(with_cosine);
  if (with_lse > 0) head.lse_mean = lses / static_cast<double>(with_lse);
  if (compared == 0) return head;
  head.divergence_mean = divergences / static_cast<double>(compared);
  head.entropy_change = entropies / static_cast<double>(compared);
  for (const int64_t i : ranked_rows(divergence, static_cast<size_t>(std::max<int64_t>(1, top)))) {
    head.top.push_back({of.query_at(i), divergence[static_cast<size_t>(i)]});
  }
  head.divergence_max = head.top.front().divergence;
  head.divergence_row = head.top.front().row;
  if (top == 0) head.top.clear();
  return head;
}

HeadDifference summarise_rows(const HeadPair& pair, std::span<const RowDifference> rows,
                              int64_t top) {
  const AttentionProblem& problem = problem_of(pair.a);
  const bool sinks = !problem.sinks().is_none() || !problem_of(pair.b).sinks().is_none();
  std::vector<int64_t> queries;
  for (int64_t i = 0; i < pair.a.num_rows(); ++i) queries.push_back(pair.a.row_at(i));
  ComparedRows of{problem.num_queries(), problem.num_keys(),
                  is_normalised(problem.score()) && !sinks, true, queries};
  of.sinks = sinks;
  return summarise_rows(of, rows, top);
}

}  // namespace attnscope
