#include "viewer/tiles/jobs/pair_rows.h"

#include <algorithm>

#include "core/base/aligned_vector.h"
#include "core/mask/masked_bias.h"

namespace attnscope {

SideRows::SideRows(HeadCache& head, Quantity quantity, std::vector<int64_t> rows,
                   const JobTools& tools)
    : id_(head.id),
      quantity_(quantity),
      reader_(head.reader),
      bound_(head.bound),
      rows_(std::move(rows)) {
  if (head.problem == nullptr || !needs_norms(head.problem->score(), quantity)) return;
  head.norms.prepare(head.geometry.rows, tools.reserve);
  known_ = head.norms.known(rows_);
  norms_.resize(rows_.size());
  for (size_t i = 0; known_ && i < rows_.size(); ++i) {
    norms_[i] = head.norms.norms()[static_cast<size_t>(rows_[i])];
  }
}

const float* SideRows::entries(WorkerScratch* scratch, size_t first, size_t count, IndexRange keys,
                               std::span<float> buffer) {
  if (reader_) {
    const int64_t row = rows_[first];
    reader_->entries(id_, {row, row + static_cast<int64_t>(count)}, keys, buffer);
    return buffer.data();
  }
  scratch->bind_to(bound_);
  const std::span<RowNorm> norms =
      norms_.empty() ? std::span<RowNorm>() : std::span(norms_).subspan(first, count);
  return scratch->entries(scratch->read(std::span(rows_).subspan(first, count)), norms, known_,
                          keys, quantity_);
}

size_t SideRows::rows_per_call(WorkerScratch* scratch, int64_t keys) const {
  if (reader_) return rows_.size();
  scratch->bind_to(bound_);
  return static_cast<size_t>(scratch->rows_per_call(std::ssize(rows_), keys, true, known_));
}

void SideRows::keep_norms(HeadCache& head) const {
  if (!norms_.empty() && !known_) head.norms.set(rows_, norms_);
}

PairRows::PairRows(HeadCache& a, HeadCache& b, Quantity quantity, const std::vector<int64_t>& rows,
                   IndexRange keys, const JobTools& tools)
    : a_(a, quantity, rows, tools), b_(b, quantity, rows, tools), keys_(keys) {
  if (!a.reader) return;
  const int64_t entries = 2 * std::ssize(rows) * keys.size() * static_cast<int64_t>(sizeof(float));
  memory_ = std::make_shared<const MemoryReservation>(
      tools.reserve(entries + a.reader->buffer_bytes(a.id) + b.reader->buffer_bytes(b.id),
                    "the entries of two maps"));
}

void PairRows::each(WorkerScratch* scratch, const Use& use) {
  const size_t all = a_.rows().size();
  const auto width = static_cast<size_t>(keys_.size());
  const size_t step = std::min(
      {all, a_.rows_per_call(scratch, keys_.size()), b_.rows_per_call(scratch, keys_.size())});
  const MemoryReservation reserved =
      memory_ ? MemoryReservation()
              : scratch->reserve(static_cast<int64_t>(step * width * sizeof(float)),
                                 "the rows of a difference");
  AlignedVector<float> of_a(step * width), of_b(memory_ ? step * width : 0);
  for (size_t first = 0; first < all; first += step) {
    const size_t count = std::min(step, all - first);
    const float* const a =
        a_.entries(scratch, first, count, keys_, std::span(of_a).first(count * width));
    if (a != of_a.data()) std::copy_n(a, count * width, of_a.begin());
    const float* const b = b_.entries(scratch, first, count, keys_,
                                      std::span(of_b).first(memory_ ? count * width : 0));
    for (size_t i = 0; i < count; ++i) {
      use(a_.rows()[first + i], std::span(of_a).subspan(i * width, width), {b + i * width, width});
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
