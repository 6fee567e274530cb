#include "viewer/tiles/jobs/overview_job.h"

#include <algorithm>

#include "viewer/tiles/jobs/masked_entries.h"
#include "viewer/tiles/jobs/pair_rows.h"

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
  const auto step =
      static_cast<size_t>(scratch.rows_per_call(std::ssize(batch.rows), keys.size(), true));
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

/// Rows of one row of texels stay together, so that they are added in order. `next`: of the row
/// after them.
std::vector<int64_t> next_rows(const OverviewProgress& sampled, const MapGeometry& geometry,
                               size_t& next) {
  std::vector<int64_t> rows;
  const auto texel_row = [&](int64_t row) { return row >> geometry.base_level; };
  for (next = sampled.next; next < sampled.rows.size(); ++next) {
    const int64_t row = sampled.rows[next];
    if (rows.size() >= kBatchRows && texel_row(row) != texel_row(rows.back())) break;
    rows.push_back(row);
  }
  return rows;
}

void take_in_rows(OverviewProgress& sampled, size_t rows) {
  sampled.rows_done += rows;
  if (sampled.rows_done < sampled.rows.size()) return;
  ++sampled.stages_done;
  sampled.next = sampled.rows_done = 0;
  sampled.rows.clear();
  if (sampled.stages_done < sampled.plan.stages()) {
    sampled.rows = sampled.plan.new_rows(sampled.stages_done);
  }
}

class OverviewJob : public SampledRowsJob {
 public:
  OverviewJob(const HeadId& id, Quantity quantity, bool first_stage)
      : SampledRowsJob(id, {quantity}, first_stage) {}

 private:
  AddRows add(HeadCache& head, const std::vector<int64_t>& rows, const JobTools& tools) override {
    const Quantity quantity = numbers().quantity;
    const bool divided = needs_norms(head.problem->score(), quantity);
    Batch batch{rows, {}, false};
    if (divided) {
      head.norms.prepare(head.geometry.rows, tools.reserve);
      batch.norms.resize(rows.size());
      batch.known = head.norms.known(rows);
      for (size_t i = 0; batch.known && i < rows.size(); ++i) {
        batch.norms[i] = head.norms.norms()[static_cast<size_t>(rows[i])];
      }
    }
    return [batch, geometry = head.geometry, quantity](WorkerScratch& scratch,
                                                       SampledOverview& overview) mutable {
      add_batch(scratch, batch, geometry, quantity, overview);
      return [batch](HeadCache& of) {
        if (!batch.norms.empty()) of.norms.set(batch.rows, batch.norms);
      };
    };
  }
};

class CutJob : public MapJob {
 public:
  explicit CutJob(const TileId& id) : MapJob(id.head), id_(id) {}

  bool needs_bound(const HeadCache&) const override { return false; }

  bool done(const HeadCache& head) const override {
    if (head.exact_tile(id_) != nullptr) return true;
    const HeadCache::OfQuantity* const of = head.find({id_.quantity, id_.against});
    return of != nullptr && of->sampled &&
           of->sampled->stages_of(id_) == of->sampled->plan.stages();
  }
  int64_t pieces_left(const HeadCache& head) const override { return done(head) ? 0 : 1; }

  std::optional<WorkItem> take(HeadCache& head, const JobTools& tools) override {
    const std::shared_ptr<OverviewProgress> sampled =
        head.of(MapNumbers{id_.quantity, id_.against}).sampled;
    if (!sampled || sampled->gave_way() || running > 1 ||
        sampled->stages_done <= sampled->stages_of(id_)) {
      return std::nullopt;
    }
    // std::function wants what can be copied.
    auto memory = std::make_shared<MemoryReservation>(
        tools.reserve(tile_bytes(id_, head.geometry), "a tile of the map"));
    const int stages = sampled->stages_done;
    const std::optional<MaskedEntries> other =
        id_.against ? masked_of(tools.head(id_.against->other)) : std::nullopt;
    return [this, sampled, memory, stages, geometry = head.geometry,
            masked = MaskedEntries(*head.problem, head.id), other](WorkerScratch*) -> Completion {
      std::shared_ptr<MapTile> tile =
          sampled->overview->cut(id_, sampled->plan.exponent(stages - 1));
      if (!id_.against) {
        masked.mark(*tile, geometry, {0, tile->rows});
      } else if (id_.quantity == Quantity::weights) {
        mark_masked_in_both(*tile, geometry, {0, tile->rows}, masked, other);
      }
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

bool SampledRowsJob::done(const HeadCache& head) const {
  const HeadCache::OfQuantity* const of = head.find(numbers_);
  if (of == nullptr) return false;
  return of->complete || (of->sampled && of->sampled->stages_done >= stages(of->sampled->plan));
}

int64_t SampledRowsJob::pieces_left(const HeadCache& head) const {
  // A pass that was faster has made the samples needless.
  if (done(head)) return 0;
  const HeadCache::OfQuantity* const of = head.find(numbers_);
  if (of == nullptr || !of->sampled) return stages(SamplePlan(head.geometry.rows));
  return stages(of->sampled->plan) - of->sampled->stages_done;
}

std::optional<WorkItem> SampledRowsJob::take(HeadCache& head, const JobTools& tools) {
  std::shared_ptr<OverviewProgress>& sampled = head.of(numbers_).sampled;
  if (!sampled) {
    const int64_t bytes =
        SampledOverview::bytes(head.geometry, numbers_.quantity, numbers_.against.has_value());
    auto memory = tools.reserve(bytes, "the overview of a map");
    // Making room may have let go of what was not wanted.
    head.of(numbers_).sampled =
        std::make_shared<OverviewProgress>(head.geometry, numbers_, std::move(memory));
    head.of(numbers_).sampled->rows = head.of(numbers_).sampled->plan.new_rows(0);
  }
  const std::shared_ptr<OverviewProgress> shared = head.of(numbers_).sampled;
  if (shared->stages_done >= stages(shared->plan)) return std::nullopt;
  if (shared->next == shared->rows.size()) return std::nullopt;
  size_t next = 0;
  const std::vector<int64_t> rows = next_rows(*shared, head.geometry, next);
  AddRows work = add(head, rows, tools);
  shared->next = next;
  return [shared, work, count = rows.size()](WorkerScratch* scratch) mutable -> Completion {
    const auto take_in = work(*scratch, *shared->overview);
    return [shared, take_in, count](HeadCache& of, TileStore&) {
      take_in(of);
      take_in_rows(*shared, count);
      return false;
    };
  };
}

std::shared_ptr<MapJob> make_overview_job(const HeadId& id, Quantity quantity, bool first_stage) {
  return std::make_shared<OverviewJob>(id, quantity, first_stage);
}

std::shared_ptr<MapJob> make_cut_job(const TileId& id) { return std::make_shared<CutJob>(id); }

}  // namespace attnscope
