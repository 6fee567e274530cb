#include "kernels/cuda/host/head/reduce_plan.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

#include "core/base/checked_math.h"
#include "core/reduce/key_counter.h"

namespace attnscope::cuda {
namespace {

/// Rows of blocks are brought to the host in batches of about this many bytes.
constexpr int64_t kBatchBytes = int64_t{1} << 20;
constexpr int64_t kBlockBytes = 8 + 4;

int64_t offsets_of(const TokenGrid& grid) {
  return (2 * grid.frames() - 1) * (2 * grid.height() - 1) * (2 * grid.width() - 1);
}

/// Block sums of up to block² weights of at most 1 fit int64_t.
double block_scale(int64_t block) {
  return std::ldexp(1.0, 61 - 2 * static_cast<int>(std::bit_width(static_cast<uint64_t>(block))));
}

template <typename T>
T* cleared(Lane& lane, DeviceBuffer& buffer, int64_t count) {
  T* const memory = buffer.get<T>(count);
  lane.clear(memory, count * static_cast<int64_t>(sizeof(T)));
  return memory;
}

template <typename T>
const T* loaded(Lane& lane, DeviceBuffer& buffer, const std::vector<T>& values) {
  T* const memory = buffer.get<T>(std::max<int64_t>(1, static_cast<int64_t>(values.size())));
  lane.upload(memory, std::span<const T>(values));
  return memory;
}

}  // namespace

ReducePlan::ReducePlan(const AttentionProblem& problem, const PanelReduction& panel)
    : problem_(problem),
      panel_(panel),
      request_(panel.request()),
      key_tiles_(ceil_div(problem.num_keys(), kTileKeys)) {
  const auto& spans = panel.segments().spans();
  size_t span = 0;
  for (int64_t tile = 0; tile < key_tiles_; ++tile) {
    tile_runs_.push_back(static_cast<int32_t>(runs_.size()));
    const IndexRange keys{tile * kTileKeys, (tile + 1) * kTileKeys};
    for (size_t s = span; s < spans.size() && spans[s].keys.begin < keys.end; ++s) {
      const IndexRange part = intersect(spans[s].keys, keys);
      runs_.push_back({static_cast<int32_t>(part.begin - keys.begin),
                       static_cast<int32_t>(part.end - keys.begin),
                       static_cast<int32_t>(spans[s].segment)});
      if (spans[s].keys.end <= keys.end) span = s + 1;
    }
  }
  tile_runs_.push_back(static_cast<int32_t>(runs_.size()));
}

int64_t ReducePlan::host_bytes(const AttentionProblem& problem, int64_t rows) {
  const int64_t keys = problem.num_keys();
  const int64_t segments = problem.key_tokens().frames() + 3;
  const int64_t per_row =
      static_cast<int64_t>(sizeof(RowReduction) + sizeof(RowTotals) + sizeof(RowFacts) +
                           sizeof(RowPart) + sizeof(RowNorm) + sizeof(RowScale)) +
      8 + segments * 8;
  const int64_t grid = problem.key_tokens().has_grid() ? offsets_of(problem.key_tokens()) * 8 : 0;
  const int64_t sums = keys * 8 + (keys + problem.num_queries()) * 8 + grid;
  const int64_t blocks = 2 * (kBatchBytes + keys * kBlockBytes);
  const int64_t tables = keys * static_cast<int64_t>(sizeof(GridPlace) + sizeof(KeyRun));
  return rows * per_row + sums + blocks + tables + kShareRows * keys * 4 + 64 * 16;
}

bool ReducePlan::wants_moments() const {
  return request_.entropy && problem_.score() == ScoreFunction::softmax;
}

IndexRange ReducePlan::key_tiles() const {
  const IndexRange keys = request_.any_rows() || request_.diagonals || request_.offsets
                              ? IndexRange{0, problem_.num_keys()}
                              : panel_.block_keys();
  return {keys.begin / kTileKeys, ceil_div(keys.end, kTileKeys)};
}

int64_t ReducePlan::diagonal_count() const {
  if (!request_.diagonals) return 0;
  return problem_.num_keys() + panel_.row_index(panel_.num_rows() - 1) - panel_.row_index(0);
}

int64_t ReducePlan::offset_count() const {
  return request_.offsets ? offsets_of(problem_.key_tokens()) : 0;
}

int64_t ReducePlan::block_batch() const {
  if (request_.block == 0) return 0;
  const int64_t rows = kBatchBytes / (kBlockBytes * panel_.block_columns());
  return std::clamp<int64_t>(rows, 1, panel_.block_rows());
}

ReduceResults ReducePlan::take_results(Workspace& workspace) const {
  const auto take = [&]<typename T>(int64_t count, T) {
    return std::span<T>(workspace.take<T>(count), static_cast<size_t>(count));
  };
  ReduceResults results;
  results.rows.resize(static_cast<size_t>(panel_.num_rows()));
  results.masses = take(wants_row_sums() ? panel_.num_rows() * segments() : 0, double());
  results.columns = take(request_.columns ? problem_.num_keys() : 0, int64_t());
  results.diagonals = take(diagonal_count(), int64_t());
  results.offsets = take(offset_count(), int64_t());
  results.share_rows =
      take(request_.share_rows.empty() ? 0 : kShareRows * problem_.num_keys(), float());
  const int64_t blocks = block_batch() * panel_.block_columns();
  results.block_integers = take(blocks, int64_t());
  results.block_bits = take(blocks, int32_t());
  results.block_max = take(blocks, float());
  results.block_sum = take(blocks, double());
  return results;
}

GridPlace ReducePlan::place_of(const TokenGrid& grid, int64_t index) const {
  GridPlace place;
  place.linear = kNowhere;
  if (!grid.has_grid() || index >= grid.tokens()) return place;
  const auto coord = grid.coord(index);
  if (!coord) return place;
  place.t = static_cast<int16_t>(coord->t);
  place.y = static_cast<int16_t>(coord->y);
  place.x = static_cast<int16_t>(coord->x);
  place.linear = static_cast<int32_t>(
      (coord->t * (2 * grid.height() - 1) + coord->y) * (2 * grid.width() - 1) + coord->x);
  return place;
}

std::vector<RowFacts> ReducePlan::row_facts(int64_t first, int64_t count, int64_t padded) const {
  // Panels begin at multiples of this: only groups that divide it end where tiles end, whatever the
  // panel.
  const bool grouped = PanelReduction::row_multiple(request_) % kGroupRows == 0;
  std::vector<RowFacts> facts(static_cast<size_t>(padded));
  const int64_t last = panel_.row_index(panel_.num_rows() - 1);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = first + i;
    const int64_t position = panel_.position(row);
    RowFacts& fact = facts[static_cast<size_t>(i)];
    fact.place = request_.places || request_.offsets
                     ? place_of(problem_.query_tokens(), panel_.row_index(row))
                     : GridPlace{.linear = kNowhere};
    fact.diagonal = static_cast<int32_t>(last - panel_.row_index(row));
    const bool begins_block = request_.block > 0 && position % request_.block == 0;
    if (request_.block > 0) fact.block_row = static_cast<int32_t>(row / request_.block);
    fact.begins_group = !grouped || begins_block || position % kGroupRows == 0 ? 1 : 0;
  }
  return facts;
}

void ReducePlan::load(Lane& lane, ReduceArgs& args) const {
  const TokenGrid& grid = problem_.key_tokens();
  args.entropy = request_.entropy && !wants_moments();
  args.places = request_.places;
  args.band = static_cast<int>(request_.band);
  args.fixed_scale = panel_.fixed_scale();
  if (wants_row_sums()) {
    args.runs = loaded(lane, lane.runs, runs_);
    args.tile_runs = loaded(lane, lane.tile_runs, tile_runs_);
  }
  if (request_.places || request_.offsets) {
    std::vector<GridPlace> places;
    for (int64_t key = 0; key < key_tiles_ * kTileKeys; ++key) {
      places.push_back(place_of(grid, key));
    }
    args.key_places = loaded(lane, lane.key_places, places);
  }
  using Sum = unsigned long long;
  if (request_.columns) args.columns = cleared<Sum>(lane, lane.columns, problem_.num_keys());
  if (request_.diagonals) {
    args.diagonals = cleared<Sum>(lane, lane.diagonals, diagonal_count());
  }
  if (request_.offsets) {
    args.offsets = cleared<Sum>(lane, lane.offsets, offset_count());
    args.offsets_centre = static_cast<int32_t>(offset_count() / 2);
  }
  if (request_.block == 0) return;
  args.block = static_cast<int>(request_.block);
  args.first_key = static_cast<int>(panel_.block_keys().begin);
  args.end_key = static_cast<int>(panel_.block_keys().end);
  args.blocks = static_cast<int>(panel_.block_columns());
  args.block_scale = block_scale(request_.block);
  const int64_t blocks = panel_.block_rows() * panel_.block_columns();
  args.block_sums = cleared<Sum>(lane, lane.block_sums, blocks);
  args.block_maxima = cleared<int32_t>(lane, lane.block_maxima, blocks);
}

void ReducePlan::keep_rows(int64_t first, std::span<const RowTotals> totals,
                           std::span<const RowNorm> norms, std::span<const double> entropy,
                           ReduceResults& results) const {
  const size_t count = std::max(totals.size(), norms.size());
  for (size_t i = 0; i < count; ++i) {
    RowReduction& row = results.rows[static_cast<size_t>(first) + i];
    if (!norms.empty()) row.norm = norms[i];
    if (totals.empty()) continue;
    row.max_weight = static_cast<double>(totals[i].max_weight);
    row.masked = row.max_weight == 0;
    if (row.masked) continue;
    if (request_.entropy) row.entropy = wants_moments() ? entropy[i] : totals[i].entropy;
    if (request_.max_keys) row.max_key = totals[i].max_key;
    row.places = {totals[i].same_position, totals[i].band, totals[i].local};
  }
}

void ReducePlan::download(Lane& lane, const ReduceArgs& args, ReduceResults& results) const {
  const auto fetch = [&](std::span<int64_t> to, const unsigned long long* from) {
    if (!to.empty()) lane.download(to.data(), from, static_cast<int64_t>(to.size_bytes()));
  };
  fetch(results.columns, args.columns);
  fetch(results.diagonals, args.diagonals);
  fetch(results.offsets, args.offsets);
}

void ReducePlan::count_shares(const FetchWeights& fetch, ReduceResults& results) const {
  std::vector<int64_t> rows;
  KeyCounter counter;
  const auto count = [&] {
    if (rows.empty()) return;
    fetch(rows, results.share_rows);
    for (size_t i = 0; i < rows.size(); ++i) {
      const RowEntries<float> row{
          results.share_rows.data() + static_cast<int64_t>(i) * problem_.num_keys(), 1};
      results.rows[static_cast<size_t>(rows[i])].keys_for = counter.count(row, problem_.num_keys());
    }
    rows.clear();
  };
  for (int64_t row = 0; row < panel_.num_rows(); ++row) {
    if (!panel_.wants_shares(row) || results.rows[static_cast<size_t>(row)].masked) continue;
    rows.push_back(row);
    if (static_cast<int64_t>(rows.size()) == kShareRows) count();
  }
  count();
}

void ReducePlan::give(Lane& lane, const ReduceArgs& args, ReduceResults& results,
                      PanelReduction& panel) const {
  for (int64_t row = 0; row < panel.num_rows(); ++row) {
    panel.row(row) = results.rows[static_cast<size_t>(row)];
    if (!results.masses.empty()) {
      std::copy_n(results.masses.begin() + row * segments(), segments(), panel.masses(row));
    }
  }
  const int64_t batch = block_batch();
  const int64_t columns = panel_.block_columns();
  for (int64_t row = 0; row < panel_.block_rows(); row += batch) {
    const int64_t count = std::min(batch, panel_.block_rows() - row) * columns;
    lane.download(results.block_integers.data(), args.block_sums + row * columns, count * 8);
    lane.download(results.block_bits.data(), args.block_maxima + row * columns, count * 4);
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      results.block_sum[at] = static_cast<double>(results.block_integers[at]) / args.block_scale;
      results.block_max[at] = std::bit_cast<float>(results.block_bits[at]);
    }
    for (int64_t at = 0; at < count; at += columns) {
      panel.take_block_row(
          row + at / columns,
          results.block_max.subspan(static_cast<size_t>(at), static_cast<size_t>(columns)),
          results.block_sum.subspan(static_cast<size_t>(at), static_cast<size_t>(columns)));
    }
  }
  panel.take_whole({results.columns, results.diagonals, results.offsets});
}

}  // namespace attnscope::cuda
