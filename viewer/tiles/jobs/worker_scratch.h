#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "core/base/aligned_vector.h"
#include "core/base/memory_budget.h"
#include "core/reduce/panel_reduction.h"
#include "core/stream/device_texels.h"
#include "core/stream/tile_backend.h"
#include "viewer/view/maps/map_tile.h"

namespace attnscope {

/// AttentionProblem::check_finite stays below it.
inline constexpr int64_t kCheckBytes = int64_t{2} << 20;

/// Takes bytes from the budget, making room where that is possible; throws Error(resource).
using Reserve = std::function<MemoryReservation(int64_t bytes, std::string_view purpose)>;
/// Bytes of the budget that are taken. Called under any lock.
using Taken = std::function<int64_t()>;
/// How often work that found no memory asks whether less is taken by now: nobody announces it.
inline constexpr std::chrono::milliseconds kMemoryWait{200};

/// A head made ready, and the memory that this takes.
struct BoundMap {
  MemoryReservation reservation;
  HeadId id;
  const AttentionProblem* problem = nullptr;
  std::unique_ptr<BoundHead> head;
  const TexelPooler* pooler = nullptr;  ///< `head`, where it pools its entries itself

  /// Binds head `id` of the problem, which must outlive this.
  void bind(const TileBackend& backend, const AttentionProblem& of, const HeadId& which);
};

/// One thread's buffers, and what it computes with them: rows of the head that it was bound to
/// last. Results are borrowed and valid until the next call. Not thread-safe.
class WorkerScratch {
 public:
  /// Borrows the backend. Work on many rows is cut into calls of the backend whose buffers stay
  /// around `bytes`, and that take a fraction of a second on this machine as it is now. `pause`,
  /// which may be empty, is called before each.
  WorkerScratch(const TileBackend& backend, int64_t bytes, Reserve reserve,
                std::function<void()> pause = {})
      : backend_(backend), bytes_(bytes), reserve_(std::move(reserve)), pause_(std::move(pause)) {}

  /// Makes head `id` ready for a few of its rows, whose number is given, without keeping it for
  /// others. Only k is checked for NaN and Inf.
  std::shared_ptr<const BoundMap> bind(const AttentionProblem& problem, const HeadId& id,
                                       int64_t rows) const;
  /// Null: to none.
  void bind_to(std::shared_ptr<const BoundMap> map) { map_ = std::move(map); }
  const AttentionProblem& problem() const { return *map_->problem; }
  int64_t row_bytes() const { return problem().q().row_bytes(); }
  /// Gives them back until they are needed again; true where there were any.
  bool release_buffers();

  /// Rows that one call should take at most, of so many, where the entries of `keys` keys are
  /// wanted, from one product with their norms or not; `known`: without their norms. Buffers for
  /// them are there then: where memory is short, of a row at least.
  int64_t rows_per_call(int64_t rows, int64_t keys, bool one_product, bool known = false);

  QueryBlock read(IndexRange rows) { return read({}, rows); }
  QueryBlock read(std::span<const int64_t> rows) {
    return read(rows, {0, static_cast<int64_t>(rows.size())});
  }
  void norms(const QueryBlock& rows, std::span<RowNorm> norms);
  /// Entries of the rows, [rows, keys.size()] packed, with the bits of an export. `norms` (one a
  /// row) are given where `known`, else computed on the way; not used where there are none.
  const float* entries(const QueryBlock& rows, std::span<RowNorm> norms, bool known,
                       IndexRange keys, Quantity quantity);
  /// Texels of the rows, pooled by the backend. False: it does not do that, or not now; entries()
  /// does. Norms are as for entries(), and `known` where they were found on the way.
  bool pool(IndexRange rows, std::span<RowNorm> norms, bool& known, const TexelRequest& request,
            const TexelTarget& target);
  /// Makes memory for texels on the head's device; null: the backend does not pool texels of this
  /// level.
  const TexelPooler* pooler(int level) const { return pooler_of(*map_, level); }
  static const TexelPooler* pooler_of(const BoundMap& map, int level) {
    return map.pooler != nullptr && level <= map.pooler->most_level() ? map.pooler : nullptr;
  }
  /// The reductions of whole rows, a panel beginning at a multiple of the request's rows.
  const PanelReduction& reduce(IndexRange rows, const ReductionRequest& request,
                               const PanelReduction::BlockRow& block_row);
  /// The reductions of the rows at `positions` of a task of this head with all keys. The task must
  /// live as long as the result is used.
  const PanelReduction& reduce(const HeadTask& task, IndexRange positions,
                               const ReductionRequest& request,
                               const PanelReduction::BlockRow& block_row);
  /// All rows and keys of the head.
  HeadTask whole_head() const {
    return {&problem(), map_->id.batch,           map_->id.head, {0, problem().num_queries()},
            {},         {0, problem().num_keys()}};
  }
  MemoryReservation reserve(int64_t bytes, std::string_view purpose) const {
    return reserve_(bytes, purpose);
  }

 private:
  struct Buffer {
    MemoryReservation reservation;
    AlignedVector<std::byte> bytes;
  };
  QueryBlock read(std::span<const int64_t> list, IndexRange rows);
  /// Runs a call of the backend that meets `rows` rows with `keys` keys, and measures it.
  void timed(int64_t rows, int64_t keys, const std::function<void()>& call);
  std::byte* grow(Buffer& buffer, int64_t bytes);
  /// rows_per_call() where memory is not short.
  int64_t usual_rows(int64_t keys, bool one_product, bool known) const;
  bool finds_room(int64_t rows, int64_t keys, bool one_product);
  std::span<std::byte> workspace(int64_t rows, int64_t keys, bool one_product);

  const TileBackend& backend_;
  const int64_t bytes_;
  const Reserve reserve_;
  const std::function<void()> pause_;
  double flops_a_second_ = 5e10;  ///< of late
  std::shared_ptr<const BoundMap> map_;
  Buffer index_, queries_, workspace_, entries_;
  MemoryReservation reduction_bytes_;
  PanelReduction reduction_;
};

}  // namespace attnscope
