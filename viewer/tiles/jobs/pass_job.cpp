#include "viewer/tiles/jobs/pass_job.h"

#include <algorithm>
#include <chrono>

#include "core/base/checked_math.h"
#include "viewer/tiles/jobs/masked_entries.h"

namespace attnscope {
namespace {

/// Panels are what a tile waits for that is wanted now, and what a backend reduces best: rows that
/// meet K together.
constexpr int64_t kMostPanelRows = 384;
constexpr double kPanelFlops = 1.2e10;

/// Where rows of blocks are reduced by the backend in the pass over the weights; blocks of one
/// entry are the entries, with the bits that emit gives.
bool reduces(Quantity quantity, const MapGeometry& geometry) {
  return quantity == Quantity::weights && geometry.base_level > 0;
}

void reduce_panel(WorkerScratch& scratch, IndexRange rows, const MapGeometry& geometry,
                  PyramidTiles& tiles, PanelResult& result) {
  ReductionRequest request;
  request.block = int64_t{1} << geometry.base_level;
  const PanelReduction& panel = scratch.reduce(
      rows, request, [&](int64_t row, std::span<const float> max, std::span<const double> sum) {
        TexelRow texels;
        texels.max.assign(max.begin(), max.end());
        texels.sum.assign(sum.begin(), sum.end());
        std::vector<TilePtr> completed = tiles.add(row, texels);
        result.completed.insert(result.completed.end(), completed.begin(), completed.end());
      });
  for (int64_t i = 0; i < rows.size() && !result.norms.empty(); ++i) {
    result.norms[static_cast<size_t>(i)] = panel.row(i).norm;
  }
}

void pool_panel(WorkerScratch& scratch, IndexRange rows, const MapGeometry& geometry,
                Quantity quantity, PyramidTiles& tiles, PanelResult& result) {
  const int64_t side = int64_t{1} << geometry.base_level;
  const int64_t step = scratch.rows_per_call(rows.size(), geometry.cols, true);
  TexelRow texels;
  for (int64_t first = rows.begin; first < rows.end; first += step) {
    const IndexRange part{first, std::min(rows.end, first + step)};
    const std::span<RowNorm> norms = result.norms.empty()
                                         ? std::span<RowNorm>()
                                         : std::span(result.norms)
                                               .subspan(static_cast<size_t>(first - rows.begin),
                                                        static_cast<size_t>(part.size()));
    const float* entries =
        scratch.entries(scratch.read(part), norms, false, {0, geometry.cols}, quantity);
    for (int64_t row = part.begin; row < part.end; ++row, entries += geometry.cols) {
      if (row % side == 0) {
        texels = TexelRow(geometry.texel_cols(geometry.base_level), quantity);
      }
      texels.add(entries, geometry.cols, side);
      if ((row + 1) % side != 0 && row + 1 != geometry.rows) continue;
      std::vector<TilePtr> completed = tiles.add(row / side, texels);
      result.completed.insert(result.completed.end(), completed.begin(), completed.end());
    }
  }
}

/// A panel's rows, computed.
class ComputedPass : public PassJob {
 public:
  using PassJob::PassJob;

 private:
  int64_t panel_rows(const HeadCache& head) const override {
    ReductionRequest request;
    request.block = int64_t{1} << head.geometry.base_level;
    const int64_t multiple = PanelReduction::row_multiple(request);
    const int64_t wanted =
        std::min(kMostPanelRows, piece_rows(*head.problem, head.geometry.cols, kPanelFlops));
    return std::max<int64_t>(1, wanted / multiple) * multiple;
  }

  bool divided(const HeadCache& head) const {
    return needs_norms(head.problem->score(), quantity());
  }

  void prepare(HeadCache& head, const JobTools& tools) override {
    if (divided(head)) head.norms.prepare(head.geometry.rows, tools.reserve);
  }

  Panel panel(HeadCache& head, IndexRange rows, const JobTools&) override {
    return [rows, divided = divided(head), geometry = head.geometry, quantity = quantity(),
            masked = MaskedEntries(*head.problem, head.id)](
               WorkerScratch* scratch, PyramidTiles& tiles, PanelResult& result) {
      result.norms.resize(divided ? static_cast<size_t>(rows.size()) : 0);
      if (reduces(quantity, geometry)) {
        reduce_panel(*scratch, rows, geometry, tiles, result);
      } else {
        pool_panel(*scratch, rows, geometry, quantity, tiles, result);
      }
      for (TilePtr& tile : result.completed) tile = masked.marked(tile, geometry);
    };
  }
};

bool take_in(PassProgress& pass, IndexRange rows, const PanelResult& result,
             const MapNumbers& numbers, HeadCache& to, TileStore& store) {
  if (!result.norms.empty()) to.norms.set(rows.begin, result.norms);
  HeadCache::OfQuantity& of = to.of(numbers);
  // A pass that failed elsewhere, or was dropped with its head.
  if (of.pass.get() != &pass) return false;
  pass.rows_done += rows.size();
  pass.worker_seconds += result.seconds;
  for (const TilePtr& tile : result.completed) {
    of.exact.insert_or_assign(tile->id, tile);
    store.erase(tile->id);
  }
  if (pass.rows_done < to.geometry.rows) return !result.completed.empty();
  of.complete = true;
  of.sampled = nullptr;
  of.pass = nullptr;
  return true;
}

}  // namespace

bool PassJob::done(const HeadCache& head) const {
  const HeadCache::OfQuantity* const of = head.find(numbers_);
  return of != nullptr && of->complete;
}

int64_t PassJob::pieces_left(const HeadCache& head) const {
  const HeadCache::OfQuantity* const of = head.find(numbers_);
  if (of != nullptr && of->complete) return 0;
  const int64_t done = of != nullptr && of->pass ? of->pass->rows_done : 0;
  return ceil_div(head.geometry.rows - done, panel_rows(head));
}

std::optional<WorkItem> PassJob::take(HeadCache& head, const JobTools& tools) {
  HeadCache::OfQuantity& of = head.of(numbers_);
  if (!of.pass) {
    prepare(head, tools);
    of.exact_memory =
        tools.reserve(PyramidTiles::bytes(head.geometry), "the exact overview of a map");
    of.pass = std::make_shared<PassProgress>(head.id, numbers_, head.geometry);
  }
  const int64_t first = of.pass->next_row;
  if (first == head.geometry.rows) return std::nullopt;
  const IndexRange rows{first, std::min(head.geometry.rows, first + panel_rows(head))};
  const Panel work = panel(head, rows, tools);
  of.pass->next_row = rows.end;
  return [shared = of.pass, rows, work, numbers = numbers_,
          other = tools.head](WorkerScratch* scratch) -> Completion {
    const auto start = std::chrono::steady_clock::now();
    auto result = std::make_shared<PanelResult>();
    work(scratch, shared->tiles, *result);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    result->seconds = spent.count();
    return [shared, rows, result, numbers, other](HeadCache& to, TileStore& store) {
      if (!result->other_norms.empty()) {
        other(numbers.against->other).norms.set(rows.begin, result->other_norms);
      }
      return take_in(*shared, rows, *result, numbers, to, store);
    };
  };
}

void PassJob::abandon(HeadCache& head) {
  HeadCache::OfQuantity& of = head.of(numbers_);
  of.pass = nullptr;
  of.exact.clear();
  of.exact_memory = {};
}

std::shared_ptr<MapJob> make_pass_job(const HeadId& id, Quantity quantity) {
  return std::make_shared<ComputedPass>(id, MapNumbers{quantity});
}

}  // namespace attnscope
