#include "core/maps/computed_map.h"

#include <algorithm>
#include <limits>

#include "core/base/aligned_vector.h"
#include "core/stream/panel.h"

namespace attnscope {
namespace {

/// The keys of the runs, moved to the row's beginning.
void move_together(std::span<float> row, std::span<const IndexRange> keys) {
  auto to = row.begin();
  for (const IndexRange run : keys) {
    to = std::copy(row.begin() + run.begin, row.begin() + run.end, to);
  }
}

class ComputedRows final : public MapRows {
 public:
  ComputedRows(const HeadTask& task, const ChosenEntries& entries, const BoundHead& head,
               int64_t rows, int64_t chosen_keys)
      : task_(task),
        wanted_(entries),
        head_(head),
        keys_(task.problem->num_keys()),
        chosen_keys_(chosen_keys),
        normed_(entries.quantity == Quantity::weights && is_normalised(task.problem->score())),
        index_(static_cast<size_t>(rows)),
        norms_(static_cast<size_t>(rows)),
        queries_(static_cast<size_t>(rows * task.problem->q().row_bytes())),
        entries_(static_cast<size_t>(rows * keys_)) {}

  void read(IndexRange rows, std::span<std::byte> workspace) override {
    const QueryBlock queries = read_query_rows(task_, rows, index_.data(), queries_.data());
    auto* const block = reinterpret_cast<std::byte*>(entries_.data());
    const EmitTarget target{{&block, 1}, keys_, keys_, Encoding::f32};
    const auto count = static_cast<size_t>(rows.size());
    if (normed_) {
      head_.emit_panel(queries, std::span(norms_).first(count), {0, keys_}, target, workspace);
    } else {
      head_.emit(queries, {}, {0, keys_}, wanted_.quantity, target, workspace);
    }
    if (chosen_keys_ == keys_) return;
    for (int64_t i = 0; i < rows.size(); ++i) {
      move_together(
          std::span(entries_).subspan(static_cast<size_t>(i * keys_), static_cast<size_t>(keys_)),
          wanted_.keys);
    }
  }
  std::span<float> row(int64_t i) override {
    return {entries_.data() + i * keys_, static_cast<size_t>(chosen_keys_)};
  }
  double lse(int64_t i) const override {
    return normed_ ? norms_[static_cast<size_t>(i)].lse()
                   : std::numeric_limits<double>::quiet_NaN();
  }

 private:
  const HeadTask& task_;
  const ChosenEntries& wanted_;
  const BoundHead& head_;
  const int64_t keys_, chosen_keys_;
  const bool normed_;
  std::vector<int64_t> index_;
  std::vector<RowNorm> norms_;
  AlignedVector<std::byte> queries_;
  AlignedVector<float> entries_;
};

}  // namespace

ComputedMap::ComputedMap(const HeadTask& task, ChosenEntries entries, const TileBackend& backend,
                         const ComputedMap* other)
    : task_(task), entries_(std::move(entries)), backend_(backend), other_(other) {
  for (const IndexRange run : entries_.keys) chosen_keys_ += run.size();
}

int64_t ComputedMap::panel_rows() const {
  constexpr int64_t kRows = 48;
  return kRows;
}

double ComputedMap::flops() const { return full_flops(task_); }

bool ComputedMap::shares_head() const {
  return other_ != nullptr && other_->task_.problem == task_.problem &&
         other_->task_.batch == task_.batch && other_->task_.head == task_.head;
}

const BoundHead& ComputedMap::head() const { return shares_head() ? *other_->bound_ : *bound_; }

int64_t ComputedMap::resident_bytes() const {
  return shares_head() ? 0 : backend_.bind_cost(*task_.problem).resident;
}

int64_t ComputedMap::transient_bytes() const {
  return backend_.bind_cost(*task_.problem).transient;
}

int64_t ComputedMap::reader_bytes(int64_t rows) const {
  const AttentionProblem& problem = *task_.problem;
  const int64_t row = problem.q().row_bytes() +
                      problem.num_keys() * static_cast<int64_t>(sizeof(float)) +
                      static_cast<int64_t>(sizeof(int64_t) + sizeof(RowNorm));
  return rows * row;
}

int64_t ComputedMap::workspace_bytes(int64_t rows) const {
  const AttentionProblem& problem = *task_.problem;
  const bool one_product = entries_.quantity == Quantity::weights && is_normalised(problem.score());
  return backend_.workspace_bytes(problem, rows, problem.num_keys(), one_product);
}

void ComputedMap::prepare() {
  if (!shares_head()) bound_ = backend_.bind(*task_.problem, task_.batch, task_.head);
}

std::unique_ptr<MapRows> ComputedMap::reader(int64_t rows) const {
  return std::make_unique<ComputedRows>(task_, entries_, head(), rows, chosen_keys_);
}

}  // namespace attnscope
