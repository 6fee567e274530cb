#include <limits>

#include "viewer/tiles/map_job.h"

namespace attnscope {
namespace {

class ProbeJob : public MapJob {
 public:
  explicit ProbeJob(const ProbeRequest& request) : MapJob(request.head), request_(request) {}

  bool done(const HeadCache&) const override { return done_; }
  int64_t pieces_left(const HeadCache&) const override { return done_ ? 0 : 1; }

  std::optional<WorkItem> take(HeadCache& head, const JobTools&) override {
    if (taken_) return std::nullopt;
    taken_ = true;
    const IndexRange row{request_.query, request_.query + 1};
    const bool divided = needs_norms(head.problem->score(), Quantity::weights);
    const bool known = divided && head.norms.known(row);
    RowNorm norm = known ? head.norms.norms()[static_cast<size_t>(row.begin)] : RowNorm();
    return [this, row, divided, known, norm](WorkerScratch& scratch) mutable -> Completion {
      const ProbedEntry entry = compute(scratch, row, norm, known);
      return [this, row, divided, norm, entry](HeadCache& of, TileStore& store) {
        if (divided) of.norms.set(row.begin, {&norm, 1});
        store.put(request_, entry);
        done_ = true;
        return true;
      };
    };
  }

 private:
  ProbedEntry compute(WorkerScratch& scratch, IndexRange row, RowNorm& norm, bool known) const {
    ProbedEntry entry{request_.query, request_.key, 0, std::numeric_limits<double>::quiet_NaN()};
    const IndexRange keys{request_.key, request_.key + 1};
    const QueryBlock queries = scratch.read(row);
    entry.weight = *scratch.entries(queries, {&norm, 1}, known, keys, Quantity::weights);
    if (!is_linear(scratch.problem().score())) {
      entry.logit = *scratch.entries(queries, {}, true, keys, Quantity::logits);
    }
    return entry;
  }

  const ProbeRequest request_;
  bool taken_ = false, done_ = false;
};

}  // namespace

std::shared_ptr<MapJob> make_probe_job(const ProbeRequest& request) {
  return std::make_shared<ProbeJob>(request);
}

}  // namespace attnscope
