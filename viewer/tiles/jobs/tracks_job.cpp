#include "viewer/tiles/jobs/tracks_job.h"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>

#include "core/base/checked_math.h"
#include "core/heads/head_arrays.h"
#include "core/problem/key_segments.h"
#include "core/problem/sampled_rows.h"
#include "viewer/view/maps/head_tracks.h"

namespace attnscope {
namespace {

/// The FLOP of a piece of the exact tracks: some 20 ms of one core.
constexpr double kTracksFlops = 4e9;

ReductionRequest tracks_request(const AttentionProblem& problem) {
  ReductionRequest request;
  request.rows = true;
  request.columns = true;
  request.entropy = is_normalised(problem.score());
  request.offsets =
      problem.key_tokens().has_grid() && problem.key_tokens() == problem.query_tokens();
  return request;
}

bool has_text(const KeySegments& keys) {
  for (int64_t group = 0; group < keys.groups(); ++group) {
    if (!keys.is_text(group)) continue;
    const auto [counts, pads] = keys.parts_of(group);
    if (keys.size_of(counts) > 0 || (pads >= 0 && keys.size_of(pads) > 0)) return true;
  }
  return false;
}

/// Σ over all text, padding included.
double text_mass(const PanelReduction& panel, int64_t row) {
  const KeySegments& keys = panel.segments();
  const double* const masses = panel.masses(row);
  double mass = 0;
  for (int64_t group = 0; group < keys.groups(); ++group) {
    if (!keys.is_text(group)) continue;
    const auto [counts, pads] = keys.parts_of(group);
    mass += masses[counts] + (pads >= 0 ? masses[pads] : 0);
  }
  return mass;
}

int64_t tracks_bytes(const AttentionProblem& problem) {
  return HeadTracks::bytes(problem.num_queries(), problem.num_keys(),
                           count_groups(problem.query_tokens()),
                           count_groups(problem.key_tokens()));
}

/// Rows of the video that attend to anything, by their place along one axis of the grid; and what
/// the weights of an axis' offsets add up to.
struct OffsetAxis {
  std::vector<int64_t> rows;
  std::vector<double> sums;
  int64_t across = 0;  ///< keys at each place of the axis

  OffsetAxis() = default;
  OffsetAxis(int64_t length, int64_t keys)
      : rows(static_cast<size_t>(length)),
        sums(static_cast<size_t>(2 * length - 1)),
        across(keys) {}

  std::vector<double> means() const {
    const auto length = static_cast<int64_t>(rows.size());
    std::vector<double> means;
    for (int64_t offset = 1 - length; offset < length; ++offset) {
      int64_t pairs = 0;
      for (int64_t at = 0; at < length; ++at) {
        if (at + offset >= 0 && at + offset < length) pairs += rows[static_cast<size_t>(at)];
      }
      const double sum = sums[static_cast<size_t>(offset + length - 1)];
      means.push_back(pairs == 0 ? std::numeric_limits<double>::quiet_NaN()
                                 : sum / static_cast<double>(pairs * across));
    }
    return means;
  }
};

/// Rows of a head on their way to its tracks.
class TracksPass {
 public:
  TracksPass(const AttentionProblem& problem, const HeadId& id, std::vector<int64_t> rows)
      : rows_(std::move(rows)),
        task_{&problem, id.batch,
              id.head,  {0, problem.num_queries()},
              rows_,    {0, problem.num_keys()}},
        request_(tracks_request(problem)) {
    tracks_.head = id;
  }
  TracksPass(const TracksPass&) = delete;
  TracksPass& operator=(const TracksPass&) = delete;

  int64_t totals_bytes() const { return HeadTotals::bytes(task_, request_); }
  /// Makes room for the numbers, once.
  void prepare() {
    totals_ = HeadTotals(task_, request_);
    const auto rows = static_cast<size_t>(task_.problem->num_queries());
    const std::vector<double> unknown(rows, std::numeric_limits<double>::quiet_NaN());
    if (request_.entropy) tracks_.entropy = unknown;
    if (needs_norms(task_.problem->score(), Quantity::weights)) tracks_.lse = unknown;
    if (request_.offsets) {
      const TokenGrid& grid = task_.problem->key_tokens();
      const int64_t t = grid.frames(), y = grid.height(), x = grid.width();
      offsets_ = {OffsetAxis(t, y * x), OffsetAxis(y, t * x), OffsetAxis(x, t * y)};
    }
    if (has_text(KeySegments(task_.problem->key_tokens(), task_.batch)))
      tracks_.text_mass = unknown;
  }
  /// Rows at these positions of the task. Several threads may add at once.
  void add(WorkerScratch& scratch, IndexRange positions) {
    const PanelReduction& panel = scratch.reduce(task_, positions, request_, {});
    const std::lock_guard lock(mutex_);
    totals_.add(task_, panel);
    for (int64_t i = 0; i < panel.num_rows(); ++i) take_row(panel, i);
  }
  int64_t num_rows() const { return task_.num_rows(); }
  /// Once all rows were added.
  std::shared_ptr<const HeadTracks> finish() {
    tracks_.computed = totals_.rows();
    tracks_.exact = totals_.rows() == task_.problem->num_queries();
    tracks_.column_mass = totals_.column_mass();
    if (totals_.rows() == totals_.masked_rows()) {
      std::fill(tracks_.column_mass.begin(), tracks_.column_mass.end(),
                std::numeric_limits<double>::quiet_NaN());
    }
    tracks_.query_groups = totals_.query_segments();
    tracks_.key_groups = totals_.key_segments();
    for (int64_t q = 0; q < tracks_.query_groups; ++q) {
      for (int64_t k = 0; k < tracks_.key_groups; ++k) {
        tracks_.group_mass.push_back(totals_.segment_mass(q, k));
      }
    }
    if (request_.offsets) take_offsets();
    return std::make_shared<const HeadTracks>(std::move(tracks_));
  }

  MemoryReservation totals_memory, tracks_memory;
  int64_t next_row = 0, rows_done = 0;  ///< under the service's lock

 private:
  void take_row(const PanelReduction& panel, int64_t i) {
    const RowReduction& row = panel.row(i);
    const auto at = static_cast<size_t>(panel.row_index(i));
    const auto value = [&](HeadArray which) { return info_of(which).of_row(row, request_); };
    if (!tracks_.entropy.empty()) tracks_.entropy[at] = value(HeadArray::entropy_rows);
    if (!tracks_.lse.empty()) tracks_.lse[at] = value(HeadArray::lse_rows);
    if (!tracks_.text_mass.empty() && !row.masked) tracks_.text_mass[at] = text_mass(panel, i);
    if (!request_.offsets || row.masked) return;
    if (const auto place = task_.problem->query_tokens().coord(panel.row_index(i))) {
      ++offsets_[0].rows[static_cast<size_t>(place->t)];
      ++offsets_[1].rows[static_cast<size_t>(place->y)];
      ++offsets_[2].rows[static_cast<size_t>(place->x)];
    }
  }
  void take_offsets() {
    const std::vector<double> sums = totals_.offset_sums();
    auto sum = sums.begin();
    auto& [in_t, in_y, in_x] = offsets_;
    for (double& of_t : in_t.sums) {
      for (double& of_y : in_y.sums) {
        for (double& of_x : in_x.sums) {
          of_t += *sum;
          of_y += *sum;
          of_x += *sum++;
        }
      }
    }
    tracks_.by_dt = in_t.means();
    tracks_.by_dy = in_y.means();
    tracks_.by_dx = in_x.means();
  }

  const std::vector<int64_t> rows_;  ///< empty: all
  const HeadTask task_;
  const ReductionRequest request_;
  std::mutex mutex_;  ///< of what follows
  HeadTotals totals_;
  HeadTracks tracks_;
  std::array<OffsetAxis, 3> offsets_;  ///< t, y, x
};

class TracksJob : public MapJob {
 public:
  TracksJob(const HeadId& id, bool exact) : MapJob(id), exact_(exact) {}

  bool done(const HeadCache& head) const override {
    return head.tracks != nullptr && (head.tracks->exact || !exact_);
  }
  int64_t pieces_left(const HeadCache& head) const override {
    if (done(head)) return 0;
    if (!exact_) return 1;
    const int64_t rows_done = pass_ ? pass_->rows_done : 0;
    return ceil_div(head.geometry.rows - rows_done, panel_rows(head));
  }

  std::optional<WorkItem> take(HeadCache& head, const JobTools& tools) override {
    const AttentionProblem& problem = *head.problem;
    if (!pass_) {
      std::vector<int64_t> rows;
      if (!exact_) rows = sampled_rows(problem.num_queries(), kTrackSample);
      auto pass = std::make_shared<TracksPass>(problem, head.id, std::move(rows));
      pass->totals_memory = tools.reserve(pass->totals_bytes(), "the sums of a head's tracks");
      pass->tracks_memory = tools.reserve(tracks_bytes(problem), "the tracks of a head");
      pass->prepare();
      pass_ = std::move(pass);
    }
    const int64_t all = pass_->num_rows();
    if (pass_->next_row == all) return std::nullopt;
    const int64_t step = exact_ ? panel_rows(head) : all;
    const IndexRange rows{pass_->next_row, std::min(all, pass_->next_row + step)};
    pass_->next_row = rows.end;
    return [pass = pass_, rows](WorkerScratch* scratch) -> Completion {
      pass->add(*scratch, rows);
      return [pass, rows](HeadCache& to, TileStore&) { return take_in(*pass, rows, to); };
    };
  }

  void abandon(HeadCache&) override { pass_ = nullptr; }

 private:
  static int64_t panel_rows(const HeadCache& head) {
    const int64_t multiple = PanelReduction::row_multiple({});
    const int64_t wanted = piece_rows(*head.problem, head.problem->num_keys(), kTracksFlops);
    return std::max<int64_t>(1, wanted / multiple) * multiple;
  }

  static bool take_in(TracksPass& pass, IndexRange rows, HeadCache& head) {
    pass.rows_done += rows.size();
    if (pass.rows_done < pass.num_rows()) return false;
    if (head.tracks != nullptr && head.tracks->exact) return false;
    head.tracks = pass.finish();
    head.tracks_memory = std::move(pass.tracks_memory);
    return true;
  }

  const bool exact_;
  std::shared_ptr<TracksPass> pass_;
};

}  // namespace

std::shared_ptr<MapJob> make_tracks_job(const HeadId& head, bool exact) {
  return std::make_shared<TracksJob>(head, exact);
}

}  // namespace attnscope
