#include "viewer/tiles/jobs/probe_job.h"

#include <limits>

namespace attnscope {
namespace {

class ProbeJob : public OnePieceJob {
 public:
  explicit ProbeJob(const ProbeRequest& request) : OnePieceJob(request.head), request_(request) {}

 private:
  WorkItem piece(HeadCache& head, const JobTools&) override {
    const IndexRange row{request_.query, request_.query + 1};
    const bool divided = needs_norms(head.problem->score(), Quantity::weights);
    const bool known = divided && head.norms.known(row);
    RowNorm norm = known ? head.norms.norms()[static_cast<size_t>(row.begin)] : RowNorm();
    return [request = request_, row, divided, known,
            norm](WorkerScratch* scratch) mutable -> Completion {
      const ProbedEntry entry = compute(*scratch, request, row, norm, known);
      return [request, row, divided, norm, entry](HeadCache& of, TileStore& store) {
        if (divided) of.norms.set(row.begin, {&norm, 1});
        store.put(request, entry);
        return true;
      };
    };
  }

  static ProbedEntry compute(WorkerScratch& scratch, const ProbeRequest& request, IndexRange row,
                             RowNorm& norm, bool known) {
    ProbedEntry entry{request.query, request.key, 0, std::numeric_limits<double>::quiet_NaN()};
    const IndexRange keys{request.key, request.key + 1};
    const QueryBlock queries = scratch.read(row);
    if (is_signed(scratch.problem().score())) {
      entry.logit = entry.weight = *scratch.entries(queries, {}, true, keys, Quantity::logits);
      return entry;
    }
    entry.weight = *scratch.entries(queries, {&norm, 1}, known, keys, Quantity::weights);
    if (!is_linear(scratch.problem().score())) {
      entry.logit = *scratch.entries(queries, {}, true, keys, Quantity::logits);
    }
    return entry;
  }

  const ProbeRequest request_;
};

}  // namespace

std::shared_ptr<MapJob> make_probe_job(const ProbeRequest& request) {
  return std::make_shared<ProbeJob>(request);
}

}  // namespace attnscope
