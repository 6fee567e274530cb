#include "core/products/row_collector.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/selection.h"

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 4> kDomains{"all", "video", "text", "frame"};

/// Divides row[range] by its sum; a range without mass stays zero.
void renormalise(std::span<float> row, IndexRange range) {
  double sum = 0;
  for (int64_t j = range.begin; j < range.end; ++j) sum += row[static_cast<size_t>(j)];
  if (sum <= 0) return;
  const double factor = 1 / sum;
  for (int64_t j = range.begin; j < range.end; ++j) {
    float& value = row[static_cast<size_t>(j)];
    value = static_cast<float>(value * factor);
  }
}

void clear(std::span<float> row, IndexRange range) {
  std::fill(row.begin() + range.begin, row.begin() + range.end, 0.0f);
}

void apply_domain(SoftmaxDomain domain, const TokenGrid& keys, std::span<float> row) {
  switch (domain) {
    case SoftmaxDomain::all:
      return;
    case SoftmaxDomain::video:
      clear(row, keys.text_range());
      return renormalise(row, keys.video_range());
    case SoftmaxDomain::text:
      clear(row, keys.video_range());
      return renormalise(row, keys.text_range());
    case SoftmaxDomain::frame: {
      clear(row, keys.text_range());
      const int64_t frame = keys.height() * keys.width();
      for (int64_t t = 0; t < keys.frames(); ++t) {
        const int64_t begin = keys.video_range().begin + t * frame;
        renormalise(row, {begin, begin + frame});
      }
      return;
    }
  }
}

}  // namespace

SoftmaxDomain parse_domain(std::string_view name) {
  for (size_t i = 0; i < kDomains.size(); ++i) {
    if (kDomains[i] == name) return static_cast<SoftmaxDomain>(i);
  }
  const std::vector<std::string> names(kDomains.begin(), kDomains.end());
  const std::string nearest = nearest_word(name, names);
  throw usage_error("--domain " + std::string(name) + ": no such domain" +
                    (nearest.empty() ? "" : ", did you mean " + nearest + "?") +
                    " (all, video, text, frame)");
}

std::string_view domain_name(SoftmaxDomain domain) { return kDomains[static_cast<size_t>(domain)]; }

RowCollector::RowCollector(std::span<const HeadTask> tasks, SoftmaxDomain domain, int workers,
                           MemoryBudget& budget)
    : domain_(domain) {
  int64_t result_bytes = 0;
  int64_t pending_bytes = 0;
  for (const HeadTask& task : tasks) {
    const int64_t keys = task.problem->num_keys();
    const int64_t groups = ceil_div(task.num_rows(), kGroupRows);
    max_keys_ = std::max(max_keys_, keys);
    max_rows_ = std::max(max_rows_, task.num_rows());
    result_bytes += keys * static_cast<int64_t>(sizeof(float));
    pending_bytes = std::max(pending_bytes, groups * keys * static_cast<int64_t>(sizeof(double)));
  }
  // Every worker can be in another head, and one more can have begun; a worker has a row and its
  // sums of its own.
  const int64_t worker_bytes = max_keys_ * static_cast<int64_t>(sizeof(float) + sizeof(double));
  const auto pending = checked_mul(pending_bytes, workers + 1);
  const auto working = checked_mul(worker_bytes, workers);
  const auto under_way = pending && working ? checked_add(*pending, *working) : std::nullopt;
  const auto total = under_way ? checked_add(*under_way, result_bytes) : std::nullopt;
  if (!total) throw Error(ErrorCode::resource, "the rows of the query are too large");
  reservation_ = budget.reserve(*total, "the rows of the query");
  rows_.resize(tasks.size());
  means_.resize(tasks.size());
  lse_.assign(tasks.size(), std::numeric_limits<double>::quiet_NaN());
}

TileRequest RowCollector::request() const {
  TileRequest request;
  request.chunk_rows = std::min(kGroupRows, max_rows_);
  request.chunk_cols = max_keys_;
  return request;
}

void RowCollector::begin(std::span<const HeadTask> tasks, int) {
  pending_.resize(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i) {
    const auto groups = static_cast<size_t>(ceil_div(tasks[i].num_rows(), request().chunk_rows));
    pending_[i].groups.resize(groups);
    pending_[i].missing = static_cast<int64_t>(groups);
    rows_[i] = tasks[i].num_rows();
  }
}

void RowCollector::consume(const Tile& tile) {
  const auto keys = static_cast<size_t>(tile.task->problem->num_keys());
  std::vector<double> sums(keys, 0.0);
  std::vector<float> row(keys);
  for (int64_t r = 0; tile.chunks.front() != nullptr && r < tile.rows.size(); ++r) {
    const auto* values = reinterpret_cast<const float*>(tile.chunks.front()) + r * max_keys_;
    std::memcpy(row.data(), values, keys * sizeof(float));
    apply_domain(domain_, tile.task->problem->key_tokens(), row);
    for (size_t j = 0; j < keys; ++j) sums[j] += row[j];
  }
  const std::lock_guard lock(mutex_);
  Pending& pending = pending_[static_cast<size_t>(tile.task_index)];
  const auto group = static_cast<size_t>(tile.rows.begin / request().chunk_rows);
  if (tile.task->num_rows() == 1 && !tile.norms.empty()) {
    lse_[static_cast<size_t>(tile.task_index)] = tile.norms.front().lse();
  }
  pending.groups[group] = std::move(sums);
  if (--pending.missing == 0) finish(tile.task_index, pending);
}

void RowCollector::finish(int64_t task, Pending& pending) {
  std::vector<double>& total = pending.groups.front();
  for (size_t g = 1; g < pending.groups.size(); ++g) {
    for (size_t j = 0; j < total.size(); ++j) total[j] += pending.groups[g][j];
  }
  const double factor = 1.0 / static_cast<double>(rows_[static_cast<size_t>(task)]);
  std::vector<float>& mean = means_[static_cast<size_t>(task)];
  mean.resize(total.size());
  for (size_t j = 0; j < total.size(); ++j) mean[j] = static_cast<float>(total[j] * factor);
  pending.groups.clear();
  pending.groups.shrink_to_fit();
}

}  // namespace attnscope
