#include "cli/diff/stored_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "cli/common/stored_input.h"
#include "core/base/error.h"
#include "core/problem/sampled_rows.h"
#include "core/problem/score.h"
#include "io/export/read/stored_rows.h"

namespace attnscope {
namespace {

std::string stored_size(const StoredMaps& maps, const StoredHead& head) {
  return fmt::format("{} of {} has {} queries and {} keys", stored_label(head),
                     one_line(maps.path().filename().string()), head.facts->query_tokens.tokens(),
                     head.facts->key_tokens.tokens());
}

void check_alike(const StoredMaps& maps_a, const StoredHead& a, const StoredMaps& maps_b,
                 const StoredHead& b) {
  if (a.facts->query_tokens.tokens() != b.facts->query_tokens.tokens() ||
      a.facts->key_tokens.tokens() != b.facts->key_tokens.tokens()) {
    const bool known = a.facts->query_tokens.has_grid() && b.facts->query_tokens.has_grid();
    throw usage_error("maps of different sizes cannot be compared: " + stored_size(maps_a, a) +
                      ", " + stored_size(maps_b, b) +
                      (known ? "" : " (as far as files without a token grid tell)"));
  }
  if (maps_a.is_logits() != maps_b.is_logits()) {
    throw usage_error("logits and weights cannot be compared: one of " + maps_a.path().string() +
                      " and " + maps_b.path().string() + " has logits");
  }
  if (!maps_a.is_logits() && a.facts->score != b.facts->score) {
    throw usage_error(fmt::format("weights of different scores cannot be compared: {} is {}, {} {}",
                                  stored_label(a), one_line(a.facts->score), stored_label(b),
                                  one_line(b.facts->score)));
  }
}

/// Where a query stands among the exported rows.
int64_t row_position(const StoredHead& head, int64_t query) {
  const std::vector<int64_t>& rows = head.facts->queries;
  return std::lower_bound(rows.begin(), rows.end(), query) - rows.begin();
}

double finite_or_nan(double value) {
  return std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

StoredPair::StoredPair(const StoredMaps& maps_a, const StoredHead& a, const StoredMaps& maps_b,
                       const StoredHead& b, int64_t sample)
    : maps_a_(maps_a), maps_b_(maps_b), a_(a), b_(b) {
  check_alike(maps_a, a, maps_b, b);
  const std::vector<int64_t>&of_a = a.facts->queries, &of_b = b.facts->queries;
  std::set_intersection(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                        std::back_inserter(queries_));
  const int64_t all = a.facts->query_tokens.tokens();
  if (sample > 0 && sample < all) {
    const std::vector<int64_t> chosen = sampled_rows(all, sample);
    std::vector<int64_t> both;
    std::set_intersection(queries_.begin(), queries_.end(), chosen.begin(), chosen.end(),
                          std::back_inserter(both));
    queries_ = std::move(both);
  }
  keys_ = {std::max(a.facts->keys.begin, b.facts->keys.begin),
           std::min(a.facts->keys.end, b.facts->keys.end)};
  if (queries_.empty() || keys_.begin >= keys_.end) {
    throw usage_error(fmt::format("{} of {} and {} of {} have no {}row and key in common",
                                  stored_label(a), one_line(maps_a.path().filename().string()),
                                  stored_label(b), one_line(maps_b.path().filename().string()),
                                  sample > 0 ? "sampled " : ""));
  }
  const auto score = parse_score(a.facts->score);
  normalised_ = !maps_a.is_logits() && score && is_normalised(*score);
}

bool StoredPair::has_all_keys() const {
  return keys_ == IndexRange{0, a_.facts->key_tokens.tokens()};
}

std::optional<HeadDifference> StoredPair::compare(
    int64_t top, MemoryBudget& budget, const std::stop_token& stop,
    const std::function<void(int64_t)>& progress) const {
  const int64_t rows = std::ssize(queries_);
  const int64_t row_bytes = 2 * keys_.size() * static_cast<int64_t>(sizeof(float));
  const int64_t fixed = stored_rows_bytes(maps_a_, a_) + stored_rows_bytes(maps_b_, b_) +
                        rows * static_cast<int64_t>(sizeof(RowDifference) + sizeof(double));
  const int64_t wanted =
      std::min(rows, std::max(a_.group->grid.chunk_rows, b_.group->grid.chunk_rows));
  const int64_t panel = std::clamp<int64_t>((budget.available() - fixed) / row_bytes, 1,
                                            std::max<int64_t>(1, wanted));
  const MemoryReservation held = budget.reserve(fixed + panel * row_bytes, "the rows of two maps");
  std::vector<float> of_a(static_cast<size_t>(panel * keys_.size())), of_b(of_a.size());
  std::vector<RowDifference> found;
  const auto keys = static_cast<size_t>(keys_.size());
  for (int64_t first = 0; first < rows; first += panel) {
    if (stop.stop_requested()) return std::nullopt;
    const auto count = static_cast<size_t>(std::min(panel, rows - first));
    const std::span queries = std::span(queries_).subspan(static_cast<size_t>(first), count);
    read_stored_rows(maps_a_, a_, queries, keys_, std::span(of_a).first(count * keys));
    read_stored_rows(maps_b_, b_, queries, keys_, std::span(of_b).first(count * keys));
    for (size_t i = 0; i < count; ++i) {
      RowDifference row =
          compare_held_rows(std::span(of_a).subspan(i * keys, keys),
                            std::span(of_b).subspan(i * keys, keys), normalised_ && has_all_keys());
      // Of a part of its keys a row has no angle.
      if (!has_all_keys()) row.cosine = std::numeric_limits<double>::quiet_NaN();
      row.lse = finite_or_nan(maps_a_.lse(a_, row_position(a_, queries[i])) -
                              maps_b_.lse(b_, row_position(b_, queries[i])));
      found.push_back(row);
    }
    progress(2 * (first + static_cast<int64_t>(count)) * keys_.size());
  }
  return summarise_rows(ComparedRows{a_.facts->query_tokens.tokens(), a_.facts->key_tokens.tokens(),
                                     normalised_, !maps_a_.is_logits(), queries_, keys_.begin},
                        found, top);
}

}  // namespace attnscope
