#include "viewer/tiles/jobs/mass_job.h"

#include <algorithm>
#include <limits>

#include "core/base/checked_math.h"
#include "core/products/key_runs.h"

namespace attnscope {
namespace {

constexpr int64_t kMassSlabRows = 8192;
constexpr int64_t kMassSlabEntries = int64_t{1} << 21;

class MassJob : public MapJob {
 public:
  MassJob(const MassRequest& request, const HeadCache& head)
      : MapJob(request.head),
        request_(request),
        divided_(needs_norms(head.problem->score(), Quantity::weights)),
        slab_rows_(
            std::clamp(std::min(piece_rows(*head.problem, request.keys.size()),
                                kMassSlabEntries / std::min(request.keys.size(), kMostRunKeys)),
                       int64_t{1}, kMassSlabRows)),
        slabs_(ceil_div(request.rows.size(), slab_rows_)) {}

  bool done(const HeadCache&) const override { return done_ == slabs_; }
  int64_t pieces_left(const HeadCache&) const override { return slabs_ - done_; }

  std::optional<WorkItem> take(HeadCache& head, const JobTools& tools) override {
    if (next_ == slabs_ || (divided_ && !head.norms.complete())) return std::nullopt;
    if (next_ == 0) {
      const auto keys = static_cast<int64_t>(sizeof(double)) * request_.keys.size();
      memory_ = tools.reserve(keys, "the masses of words");
      parts_memory_ = tools.reserve(keys * slabs_, "the sums of words");
      parts_.resize(static_cast<size_t>(slabs_));
    }
    const int64_t slab = next_++;
    const int64_t first = request_.rows.begin + slab * slab_rows_;
    const IndexRange rows{first, std::min(request_.rows.end, first + slab_rows_)};
    std::vector<RowNorm> norms;
    if (divided_) {
      norms.assign(head.norms.norms().begin() + rows.begin, head.norms.norms().begin() + rows.end);
    }
    return [this, slab, rows, norms](WorkerScratch* scratch) mutable -> Completion {
      auto part = std::make_shared<MassPart>(sum(*scratch, rows, norms));
      return [this, slab, part](HeadCache&, TileStore& store) {
        parts_[static_cast<size_t>(slab)] = std::move(*part);
        if (++done_ < slabs_) return false;
        store.put(add_up(), std::move(memory_));
        parts_ = {};
        parts_memory_ = {};
        return true;
      };
    };
  }

 private:
  struct MassPart {
    int64_t rows = 0;
    std::vector<double> sums;  ///< [keys]
  };

  MassPart sum(WorkerScratch& scratch, IndexRange rows, std::vector<RowNorm>& norms) const {
    MassPart part;
    part.sums.resize(static_cast<size_t>(request_.keys.size()), 0.0);
    const auto dead = [](const RowNorm& norm) { return norm.sum == 0; };
    part.rows = rows.size() - std::count_if(norms.begin(), norms.end(), dead);
    const QueryBlock queries = scratch.read(rows);
    for (int64_t at = request_.keys.begin; at < request_.keys.end; at += kMostRunKeys) {
      const IndexRange keys{at, std::min(request_.keys.end, at + kMostRunKeys)};
      const float* entry = scratch.entries(queries, norms, true, keys, Quantity::weights);
      double* const to = part.sums.data() + (at - request_.keys.begin);
      for (int64_t row = 0; row < rows.size(); ++row, entry += keys.size()) {
        for (int64_t k = 0; k < keys.size(); ++k) to[k] += static_cast<double>(entry[k]);
      }
    }
    return part;
  }

  MassPtr add_up() const {
    auto all = std::make_shared<KeyMasses>();
    all->request = request_;
    all->masses.resize(static_cast<size_t>(request_.keys.size()), 0.0);
    for (const MassPart& part : parts_) {
      all->rows += part.rows;
      for (size_t k = 0; k < part.sums.size(); ++k) all->masses[k] += part.sums[k];
    }
    const double rows =
        all->rows > 0 ? static_cast<double>(all->rows) : std::numeric_limits<double>::quiet_NaN();
    for (double& mass : all->masses) mass /= rows;
    return all;
  }

  const MassRequest request_;
  const bool divided_;  ///< by the rows' norms
  const int64_t slab_rows_, slabs_;
  int64_t next_ = 0, done_ = 0;
  MemoryReservation memory_, parts_memory_;
  std::vector<MassPart> parts_;
};

}  // namespace

std::shared_ptr<MapJob> make_mass_job(const MassRequest& request, const HeadCache& head) {
  return std::make_shared<MassJob>(request, head);
}

}  // namespace attnscope
