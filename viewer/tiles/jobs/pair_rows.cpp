#include "viewer/tiles/jobs/pair_rows.h"

#include <algorithm>

#include "core/base/aligned_vector.h"
#include "core/mask/masked_bias.h"

namespace attnscope {

SideRows::SideRows(HeadCache& head, Quantity quantity, std::vector<int64_t> rows,
                   const JobTools& tools)
    : id_(head.id), quantity_(quantity), bound_(head.bound), rows_(std::move(rows)) {
  if (head.problem == nullptr || !needs_norms(head.problem->score(), quantity)) return;
  head.norms.prepare(head.geometry.rows, tools.reserve);
  known_ = head.norms.known(rows_);
  norms_.resize(rows_.size());
  for (size_t i = 0; known_ && i < rows_.size(); ++i) {
    norms_[i] = head.norms.norms()[static_cast<size_t>(rows_[i])];
  }
}

const float* SideRows::entries(WorkerScratch& scratch, size_t first, size_t count,
                               IndexRange keys) {
  scratch.bind_to(bound_);
  const std::span<RowNorm> norms =
      norms_.empty() ? std::span<RowNorm>() : std::span(norms_).subspan(first, count);
  return scratch.entries(scratch.read(std::span(rows_).subspan(first, count)), norms, known_, keys,
                         quantity_);
}

size_t SideRows::rows_per_call(WorkerScratch& scratch, int64_t keys) const {
  scratch.bind_to(bound_);
  return static_cast<size_t>(scratch.rows_per_call(std::ssize(rows_), keys, true, known_));
}

void SideRows::keep_norms(HeadCache& head) const {
  if (!norms_.empty() && !known_) head.norms.set(rows_, norms_);
}

void PairRows::each(WorkerScratch& scratch, IndexRange keys, const Use& use) {
  const size_t all = a_.rows().size();
  const auto width = static_cast<size_t>(keys.size());
  const size_t step = std::min(
      {all, a_.rows_per_call(scratch, keys.size()), b_.rows_per_call(scratch, keys.size())});
  const MemoryReservation reserved = scratch.reserve(
      static_cast<int64_t>(step * width * sizeof(float)), "the rows of a difference");
  AlignedVector<float> first_side(step * width);
  for (size_t first = 0; first < all; first += step) {
    const size_t count = std::min(step, all - first);
    std::copy_n(a_.entries(scratch, first, count, keys), count * width, first_side.begin());
    const float* const b = b_.entries(scratch, first, count, keys);
    for (size_t i = 0; i < count; ++i) {
      use(a_.rows()[first + i], std::span(first_side).subspan(i * width, width),
          {b + i * width, width});
    }
  }
}

std::optional<MaskedEntries> masked_of(const HeadCache& head) {
  if (head.problem == nullptr) return std::nullopt;
  return MaskedEntries(*head.problem, head.id);
}

bool mark_masked_in_both(MapTile& tile, const MapGeometry& geometry, IndexRange texel_rows,
                         const std::optional<MaskedEntries>& a,
                         const std::optional<MaskedEntries>& b) {
  if (!a || !b || !a->any() || !b->any()) return false;
  MapTile of_a = tile, of_b = tile;
  if (!a->mark(of_a, geometry, texel_rows) || !b->mark(of_b, geometry, texel_rows)) return false;
  bool marked = false;
  for (size_t i = 0; i < tile.max.size(); ++i) {
    if (of_a.max[i] != kMasked || of_b.max[i] != kMasked) continue;
    tile.max[i] = tile.mean[i] = kMasked;
    marked = true;
  }
  return marked;
}

}  // namespace attnscope
