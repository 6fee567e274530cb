#include "viewer/tiles/overview_job.h"

#include <algorithm>

#include "viewer/tiles/masked_entries.h"

namespace attnscope {
namespace {

/// Sampled rows of a piece: as many as backends take at once without needing much memory.
constexpr size_t kBatchRows = 24;

struct Batch {
  std::vector<int64_t> rows;
  std::vector<RowNorm> norms;
  bool known = false;
};

void add_batch(WorkerScratch& scratch, Batch& batch, const MapGeometry& geometry, Quantity quantity,
               SampledOverview& overview) {
  const IndexRange keys{0, geometry.cols};
  const auto step = static_cast<size_t>(scratch.rows_per_call(keys.size(), true));
  const std::span<const int64_t> rows(batch.rows);
  for (size_t first = 0; first < rows.size(); first += step) {
    const size_t count = std::min(step, rows.size() - first);
    const std::span<RowNorm> norms =
        batch.norms.empty() ? std::span<RowNorm>() : std::span(batch.norms).subspan(first, count);
    const float* row = scratch.entries(scratch.read(rows.subspan(first, count)), norms, batch.known,
                                       keys, quantity);
    for (size_t i = 0; i < count; ++i, row += keys.size()) {
      TexelRow texels(geometry.texel_cols(geometry.base_level), quantity);
      texels.add(row, keys.size(), int64_t{1} << geometry.base_level);
      overview.add(rows[first + i], texels);
    }
  }
}

class OverviewJob : public MapJob {
 public:
  OverviewJob(const HeadId& id, Quantity quantity) : MapJob(id), quantity_(quantity) {}

  bool done(const HeadCache& head) const override {
    const HeadCache::OfQuantity& of = head.quantities[static_cast<size_t>(quantity_)];
    return of.complete || (of.sampled && of.sampled->stages_done == of.sampled->plan.stages());
  }

  int64_t pieces_left(const HeadCache& head) const override {
    // A pass that was faster has made the samples needless.
    if (done(head)) return 0;
    const auto& sampled = head.quantities[static_cast<size_t>(quantity_)].sampled;
    if (!sampled) return SamplePlan(head.geometry.rows).stages();
    return sampled->plan.stages() - sampled->stages_done;
  }

  std::optional<WorkItem> take(HeadCache& head, const JobTools& tools) override {
    std::shared_ptr<OverviewProgress>& sampled = head.of(quantity_).sampled;
    if (!sampled) {
      const int64_t bytes = SampledOverview::bytes(head.geometry, quantity_);
      sampled = std::make_shared<OverviewProgress>(head.geometry, quantity_,
                                                   tools.reserve(bytes, "the overview of a map"));
      sampled->rows = sampled->plan.new_rows(0);
    }
    if (sampled->next == sampled->rows.size()) return std::nullopt;
    const bool divided = needs_norms(head.problem->score(), quantity_);
    if (divided) head.norms.prepare(head.geometry.rows, tools.reserve);
    Batch batch = next_batch(*sampled, head.geometry);
    if (divided) {
      batch.norms.resize(batch.rows.size());
      batch.known = head.norms.known(batch.rows);
      for (size_t i = 0; batch.known && i < batch.rows.size(); ++i) {
        batch.norms[i] = head.norms.norms()[static_cast<size_t>(batch.rows[i])];
      }
    }
    return [shared = sampled, batch, geometry = head.geometry,
            quantity = quantity_](WorkerScratch* scratch) mutable -> Completion {
      add_batch(*scratch, batch, geometry, quantity, shared->overview);
      return [shared, batch](HeadCache& of, TileStore&) {
        if (!batch.norms.empty()) of.norms.set(batch.rows, batch.norms);
        take_in(*shared, batch.rows.size());
        return false;
      };
    };
  }

  void abandon(HeadCache& head) override { head.of(quantity_).sampled = nullptr; }

 private:
  /// Rows of one row of texels stay together, so that they are added in order.
  static Batch next_batch(OverviewProgress& sampled, const MapGeometry& geometry) {
    Batch batch;
    const auto texel_row = [&](int64_t row) { return row >> geometry.base_level; };
    while (sampled.next < sampled.rows.size()) {
      const int64_t row = sampled.rows[sampled.next];
      if (batch.rows.size() >= kBatchRows && texel_row(row) != texel_row(batch.rows.back())) break;
      batch.rows.push_back(row);
      ++sampled.next;
    }
    return batch;
  }

  static void take_in(OverviewProgress& sampled, size_t rows) {
    sampled.rows_done += rows;
    if (sampled.rows_done < sampled.rows.size()) return;
    ++sampled.stages_done;
    sampled.next = sampled.rows_done = 0;
    sampled.rows.clear();
    if (sampled.stages_done < sampled.plan.stages()) {
      sampled.rows = sampled.plan.new_rows(sampled.stages_done);
    }
  }

  const Quantity quantity_;
};

class CutJob : public MapJob {
 public:
  explicit CutJob(const TileId& id) : MapJob(id.head), id_(id) {}

  bool needs_bound() const override { return false; }

  bool done(const HeadCache& head) const override {
    if (head.exact_tile(id_) != nullptr) return true;
    const auto& sampled = head.quantities[static_cast<size_t>(id_.quantity)].sampled;
    return sampled && sampled->stages_of(id_) == sampled->plan.stages();
  }
  int64_t pieces_left(const HeadCache& head) const override { return done(head) ? 0 : 1; }

  std::optional<WorkItem> take(HeadCache& head, const JobTools& tools) override {
    const std::shared_ptr<OverviewProgress> sampled = head.of(id_.quantity).sampled;
    if (!sampled || running > 1 || sampled->stages_done <= sampled->stages_of(id_)) {
      return std::nullopt;
    }
    // std::function wants what can be copied.
    auto memory = std::make_shared<MemoryReservation>(
        tools.reserve(tile_bytes(id_, head.geometry), "a tile of the map"));
    const int stages = sampled->stages_done;
    return [this, sampled, memory, stages, geometry = head.geometry,
            masked = MaskedEntries(*head.problem, head.id)](WorkerScratch*) -> Completion {
      std::shared_ptr<MapTile> tile =
          sampled->overview.cut(id_, sampled->plan.exponent(stages - 1));
      masked.mark(*tile, geometry, {0, tile->rows});
      return [this, sampled, tile, memory, stages](HeadCache& of, TileStore& store) {
        sampled->cut[id_] = stages;
        if (of.exact_tile(id_) != nullptr) return false;
        store.put(tile, std::move(*memory));
        return true;
      };
    };
  }

 private:
  const TileId id_;
};

}  // namespace

std::shared_ptr<MapJob> make_overview_job(const HeadId& id, Quantity quantity) {
  return std::make_shared<OverviewJob>(id, quantity);
}

std::shared_ptr<MapJob> make_cut_job(const TileId& id) { return std::make_shared<CutJob>(id); }

}  // namespace attnscope
