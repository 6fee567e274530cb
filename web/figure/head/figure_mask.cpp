#include "web/figure/head/figure_mask.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "core/mask/masked_bias.h"
#include "web/figure/head/figure_refusal.h"

namespace attnscope {
namespace {

/// Rows and keys (of the sequence) that are looked at together.
constexpr int64_t kLookRows = 64;
constexpr int64_t kLookKeys = 8192;

using Runs = std::vector<IndexRange>;

/// Appends key `key` of the cut.
void keep_key(Runs& runs, int64_t key) {
  if (!runs.empty() && runs.back().end == key) {
    ++runs.back().end;
  } else {
    runs.push_back({key, key + 1});
  }
}

/// The runs of keys that some rows keep, found part after part of the keys.
class RowRuns {
 public:
  RowRuns(const FigureCut& cut, IndexRange rows)
      : cut_(cut), runs_(static_cast<size_t>(rows.size())) {
    for (int64_t row = rows.begin; row < rows.end; ++row) queries_.push_back(cut.rows.at(row));
    biases_.resize(static_cast<size_t>(rows.size() * kLookKeys));
  }

  /// `keys`: of the cut.
  void look(IndexRange keys) {
    const Mask& mask = cut_.problem->mask();
    const IndexRange stored{cut_.keys.at(keys.begin), cut_.keys.at(keys.end - 1) + 1};
    const IndexRange queries{queries_.front(), queries_.back() + 1};
    const TileClass whole = mask.classify(cut_.batch, cut_.head, queries, stored);
    if (whole == TileClass::empty) return;
    if (whole == TileClass::mixed) {
      mask.fill_bias(cut_.batch, cut_.head, queries_, stored, biases_.data(), kLookKeys);
    }
    for (size_t row = 0; row < runs_.size(); ++row) {
      const float* const biases = biases_.data() + row * static_cast<size_t>(kLookKeys);
      for (int64_t key = keys.begin; key < keys.end; ++key) {
        const int64_t at = cut_.keys.at(key) - stored.begin;
        if (whole == TileClass::full || biases[at] > kMaskedBias) keep_key(runs_[row], key);
      }
    }
  }

  std::span<const Runs> runs() const { return runs_; }

 private:
  const FigureCut& cut_;
  std::vector<int64_t> queries_;
  std::vector<Runs> runs_;
  std::vector<float> biases_;
};

/// Rows that keep the same share a list.
class RunLists {
 public:
  void add(const Runs& runs) {
    std::vector<int64_t> numbers;
    for (const IndexRange& run : runs) numbers.insert(numbers.end(), {run.begin, run.end});
    const auto [found, is_new] =
        lists_.try_emplace(std::move(numbers), static_cast<int32_t>(lists_.size()));
    mask_.row_lists.push_back(found->second);
    if (!is_new) return;
    mask_.runs.insert(mask_.runs.end(), runs.begin(), runs.end());
    mask_.starts.push_back(static_cast<int32_t>(mask_.runs.size()));
  }
  int64_t runs() const { return static_cast<int64_t>(mask_.runs.size()); }
  PageMask take() { return std::move(mask_); }

 private:
  std::map<std::vector<int64_t>, int32_t> lists_;
  PageMask mask_{{}, {0}, {}};
};

}  // namespace

PageMask page_mask_of(const FigureCut& cut) {
  const AttentionProblem& problem = *cut.problem;
  RunLists lists;
  const int64_t step = std::max<int64_t>(1, kLookKeys / cut.keys.stride);
  for (int64_t row = 0; row < cut.rows.count; row += kLookRows) {
    RowRuns rows(cut, {row, std::min(row + kLookRows, cut.rows.count)});
    for (int64_t key = 0; key < cut.keys.count; key += step) {
      rows.look({key, std::min(key + step, cut.keys.count)});
    }
    for (const Runs& runs : rows.runs()) lists.add(runs);
    if (lists.runs() <= kMostPageRuns) continue;
    throw FigureRefusal(
        ErrorCode::usage,
        fmt::format("{}: its mask ({}) keeps more than {} different runs of keys, more than a page "
                    "carries: take fewer rows ({}, {})",
                    problem.name(), problem.mask().describe(), kMostPageRuns,
                    cut.choice.option("rows", "A:B"), cut.choice.option("stride", "N")));
  }
  return lists.take();
}

}  // namespace attnscope
