// TileScheduler::want: what is wanted becomes an order of jobs.
#include <algorithm>

#include "core/base/error.h"
#include "viewer/tiles/tile_scheduler.h"

namespace attnscope {
namespace {

void check_line(const LineRequest& request, const MapGeometry& geometry) {
  const int64_t count = request.reverse ? geometry.cols : geometry.rows;
  const std::vector<int64_t>& tokens = request.tokens;
  const bool ascending =
      std::adjacent_find(tokens.begin(), tokens.end(), std::greater_equal<>()) == tokens.end();
  if (tokens.empty() || !ascending || tokens.front() < 0 || tokens.back() >= count) {
    throw usage_error("a line's tokens must ascend within 0 … " + std::to_string(count - 1));
  }
}

void check_probe(const ProbeRequest& probe, const MapGeometry& geometry) {
  if (probe.query < 0 || probe.query >= geometry.rows || probe.key < 0 ||
      probe.key >= geometry.cols) {
    throw usage_error("the map has no entry " + std::to_string(probe.query) + ", " +
                      std::to_string(probe.key));
  }
}

void check_tile(const TileId& id, const MapGeometry& geometry) {
  if (id.level < 0 || id.level > geometry.top_level || id.row < 0 || id.col < 0 ||
      id.row >= geometry.tile_rows(id.level) || id.col >= geometry.tile_cols(id.level)) {
    throw usage_error("no tile at row " + std::to_string(id.row) + ", column " +
                      std::to_string(id.col) + " of level " + std::to_string(id.level) +
                      ": the map has levels 0 … " + std::to_string(geometry.top_level));
  }
}

}  // namespace

void check_wishes(const WantedTiles& wishes,
                  const std::function<MapGeometry(const HeadId&)>& geometry) {
  for (const auto& line : {wishes.line, wishes.other_line}) {
    if (line) check_line(*line, geometry(line->head));
  }
  for (const ProbeRequest& probe : wishes.probes) check_probe(probe, geometry(probe.head));
  for (const TileId& tile : wishes.tiles) check_tile(tile, geometry(tile.head));
  for (const HeadId& head : wishes.exact) geometry(head);
}

void TileScheduler::want(WantedTiles wishes) {
  check_wishes(wishes, [this](const HeadId& id) { return geometry(id); });
  wishes_ = std::move(wishes);
  for (auto& [id, head] : heads_) head.wanted = false;
  const auto mark = [&](const HeadId& id) {
    HeadCache& data = head(id);
    data.wanted = true;
    data.used = store_.tick();
  };
  for (const auto& line : {wishes_.line, wishes_.other_line}) {
    if (line) mark(line->head);
  }
  for (const ProbeRequest& probe : wishes_.probes) mark(probe.head);
  for (const TileId& tile : wishes_.tiles) mark(tile.head);
  for (const HeadId& id : wishes_.exact) mark(id);
  pinned_ = std::set<TileId>(wishes_.tiles.begin(), wishes_.tiles.end());
  std::erase_if(failed_heads_, [&](const HeadId& id) { return !head(id).wanted; });
  order_jobs();
  std::erase_if(failed_, [&](const JobKey& key) { return !ordered_.contains(key); });
  if (failed_.empty() && failed_heads_.empty()) problem_.clear();
  std::erase_if(jobs_, [&](const auto& job) {
    return !ordered_.contains(job.first) && job.second->running == 0;
  });
}

void TileScheduler::order_jobs() {
  order_.clear();
  ordered_.clear();
  for (const ProbeRequest& probe : wishes_.probes) order_probe(probe);
  if (wishes_.line) order_line(*wishes_.line);
  if (wishes_.other_line) order_line(*wishes_.other_line);
  for (const TileId& tile : wishes_.tiles) order_tile(tile);
  for (const HeadId& id : wishes_.exact) {
    if (wants_logits(id)) order_pass(id, Quantity::logits);
    order_pass(id, Quantity::weights);
  }
  for (const auto& line : {wishes_.line, wishes_.other_line}) {
    if (!line || !line->reverse) continue;
    const HeadCache& of = head(line->head);
    if (needs_norms(of.problem->score(), line->quantity) && !of.norms.complete()) {
      order_pass(line->head, Quantity::weights);
    }
  }
}

void TileScheduler::order(JobKey key, HeadCache& head,
                          const std::function<std::shared_ptr<MapJob>()>& make) {
  if (!ordered_.insert(key).second || is_failed(key, head.id)) return;
  std::shared_ptr<MapJob>& job = jobs_[key];
  if (job == nullptr) job = make();
  order_.push_back({std::move(key), job});
}

void TileScheduler::order_probe(const ProbeRequest& request) {
  if (store_.find(request)) return;
  order(request, head(request.head), [&] { return make_probe_job(request); });
}

void TileScheduler::order_line(const LineRequest& request) {
  if (store_.find(request) != nullptr) return;
  HeadCache& of = head(request.head);
  order(request, of, [&] { return make_line_job(request, of); });
}

void TileScheduler::order_tile(const TileId& id) {
  HeadCache& of = head(id.head);
  if (id.level < of.geometry.base_level) {
    if (store_.find(id) == nullptr) order(id, of, [&] { return make_fine_tile_job(id, of); });
    return;
  }
  if (of.exact_tile(id) != nullptr) return;
  const int stages = SamplePlan(of.geometry.rows).stages();
  if (stages == 0) return order_pass(id.head, id.quantity);
  const auto& sampled = of.of(id.quantity).sampled;
  if (sampled && store_.find(id) == nullptr) sampled->cut.erase(id);
  // Cutting comes first: each stage of the overview is shown before the next begins.
  if (!sampled || sampled->stages_of(id) < stages) order(id, of, [&] { return make_cut_job(id); });
  if (sampled && sampled->stages_done == stages) return;
  order(OverviewKey{id.head, id.quantity}, of,
        [&] { return make_overview_job(id.head, id.quantity); });
}

void TileScheduler::order_pass(const HeadId& id, Quantity quantity) {
  HeadCache& of = head(id);
  if (of.of(quantity).complete) return;
  order(PassKey{id, quantity}, of, [&] { return make_pass_job(id, quantity); });
}

bool TileScheduler::is_failed(const JobKey& key, const HeadId& head) const {
  return failed_heads_.contains(head) || failed_.contains(key);
}

}  // namespace attnscope
