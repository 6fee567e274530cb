#include "viewer/tiles/jobs/worker_scratch.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "core/base/error.h"
#include "core/stream/device_facet.h"
#include "core/stream/few_rows.h"
#include "core/stream/panel.h"

namespace attnscope {
namespace {

/// The fastest first: a backend reads K once for all rows of a call.
constexpr int64_t kCallRows[] = {96, 48, 24, 12};
/// The time that a call should take at most where it can be cut: closing the window, and the next
/// tile, wait for it.
constexpr double kCallSeconds = 0.25;
/// Rows whose norms are asked of a device at once: enough to fill one.
constexpr int64_t kDeviceRows = 4096;

}  // namespace

int64_t WorkerScratch::usual_rows(int64_t keys, bool one_product, bool known) const {
  const double flops = 2.0 * static_cast<double>(problem().head_dim()) *
                       static_cast<double>(known ? keys : problem().num_keys());
  const double quick = flops_a_second_ * kCallSeconds / flops;
  for (const int64_t rows : kCallRows) {
    const int64_t bytes = backend_.workspace_bytes(problem(), rows, keys, one_product) +
                          rows * (keys * static_cast<int64_t>(sizeof(float)) + row_bytes());
    const bool last = rows == kCallRows[std::size(kCallRows) - 1];
    if (bytes <= bytes_ && (last || static_cast<double>(rows) <= quick)) return rows;
  }
  return 1;
}

bool WorkerScratch::finds_room(int64_t rows, int64_t keys, bool one_product) {
  try {
    grow(queries_, rows * row_bytes());
    grow(entries_, rows * keys * static_cast<int64_t>(sizeof(float)));
    workspace(rows, keys, one_product);
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::resource) throw;
    for (Buffer* const buffer : {&queries_, &workspace_, &entries_}) *buffer = {};
    return false;
  }
}

int64_t WorkerScratch::rows_per_call(int64_t rows, int64_t keys, bool one_product, bool known) {
  int64_t count = std::clamp<int64_t>(rows, 1, usual_rows(keys, one_product, known));
  while (count > 1 && !finds_room(count, keys, one_product)) count /= 2;
  return std::max<int64_t>(1, count);
}

void WorkerScratch::timed(int64_t rows, int64_t keys, const std::function<void()>& call) {
  if (pause_) pause_();
  const auto start = std::chrono::steady_clock::now();
  call();
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  // Backends take rows by the dozen; small calls tell nothing.
  const double flops = 2.0 * static_cast<double>(problem().head_dim()) * static_cast<double>(keys) *
                       static_cast<double>(std::max<int64_t>(12, rows));
  if (flops < 1e7 || spent.count() <= 0) return;
  flops_a_second_ += 0.25 * (flops / spent.count() - flops_a_second_);
}

std::byte* WorkerScratch::grow(Buffer& buffer, int64_t bytes) {
  if (bytes > static_cast<int64_t>(buffer.bytes.size())) {
    buffer = {};
    buffer.reservation = reserve_(bytes, "the buffers of a worker");
    buffer.bytes.resize(static_cast<size_t>(bytes));
  }
  return buffer.bytes.data();
}

bool WorkerScratch::release_buffers() {
  int64_t held = reduction_bytes_.bytes();
  for (Buffer* const buffer : {&index_, &queries_, &workspace_, &entries_}) {
    held += buffer->reservation.bytes();
    *buffer = {};
  }
  reduction_ = {};
  reduction_bytes_ = {};
  return held > 0;
}

std::span<std::byte> WorkerScratch::workspace(int64_t rows, int64_t keys, bool one_product) {
  const int64_t bytes = backend_.workspace_bytes(problem(), rows, keys, one_product);
  return {grow(workspace_, bytes), static_cast<size_t>(bytes)};
}

QueryBlock WorkerScratch::read(std::span<const int64_t> list, IndexRange rows) {
  const HeadTask task{&problem(), map_->id.batch, map_->id.head, rows, list, {}};
  auto* index = reinterpret_cast<int64_t*>(grow(index_, rows.size() * 8));
  std::byte* queries = grow(queries_, rows.size() * row_bytes());
  return read_query_rows(task, {0, rows.size()}, index, queries);
}

void WorkerScratch::norms(const QueryBlock& rows, std::span<RowNorm> norms) {
  const auto count = static_cast<int64_t>(rows.index.size());
  timed(count, problem().num_keys(),
        [&] { map_->head->row_norms(rows, norms, workspace(count, 0, false)); });
}

const float* WorkerScratch::entries(const QueryBlock& rows, std::span<RowNorm> norms, bool known,
                                    IndexRange keys, Quantity quantity) {
  const auto count = static_cast<int64_t>(rows.index.size());
  std::byte* block = grow(entries_, count * keys.size() * static_cast<int64_t>(sizeof(float)));
  const EmitTarget target{{&block, 1}, keys.size(), keys.size(), Encoding::f32};
  const bool divided = needs_norms(problem().score(), quantity);
  if (divided && !known && keys.size() == problem().num_keys()) {
    timed(count, keys.size(), [&] {
      map_->head->emit_panel(rows, norms, keys, target, workspace(count, keys.size(), true));
    });
  } else {
    if (divided && !known) this->norms(rows, norms);
    const std::span<const RowNorm> used = divided ? norms : std::span<RowNorm>();
    timed(count, keys.size(), [&] {
      map_->head->emit(rows, used, keys, quantity, target, workspace(count, keys.size(), false));
    });
  }
  return reinterpret_cast<const float*>(block);
}

bool WorkerScratch::pool(IndexRange rows, std::span<RowNorm> norms, bool& known,
                         const TexelRequest& request, const TexelTarget& target) {
  const TexelPooler* const pooler = this->pooler(request.level);
  if (pooler == nullptr) return false;
  const QueryBlock queries = read(rows);
  for (int64_t first = 0; !known && !norms.empty() && first < rows.size(); first += kDeviceRows) {
    const auto count = static_cast<size_t>(std::min(kDeviceRows, rows.size() - first));
    const QueryBlock part{queries.data + first * row_bytes(),
                          queries.index.subspan(static_cast<size_t>(first), count)};
    this->norms(part, norms.subspan(static_cast<size_t>(first), count));
  }
  known = true;
  bool pooled = false;
  timed(rows.size(), request.keys.size(),
        [&] { pooled = pooler->pool(queries, norms, request, target); });
  return pooled;
}

const PanelReduction& WorkerScratch::reduce(IndexRange rows, const ReductionRequest& request,
                                            const PanelReduction::BlockRow& block_row) {
  const HeadTask task = whole_head();
  return reduce(task, rows, request, block_row);
}

const PanelReduction& WorkerScratch::reduce(const HeadTask& task, IndexRange positions,
                                            const ReductionRequest& request,
                                            const PanelReduction::BlockRow& block_row) {
  const int64_t keys = problem().num_keys();
  const int64_t bytes =
      PanelReduction::bytes(task, request, positions.size(), backend_.open_units());
  if (bytes > reduction_bytes_.bytes()) {
    reduction_ = {};
    reduction_bytes_ = {};
    reduction_bytes_ = reserve_(bytes, "the reductions of a worker");
  }
  const QueryBlock queries =
      task.row_list.empty() ? read(positions) : read(task.row_list, positions);
  reduction_.begin(task, request, positions, queries.index, block_row, backend_.open_units());
  const int64_t step = backend_.whole_panel_rows() > 0
                           ? positions.size()
                           : std::min(positions.size(), usual_rows(keys, true, false));
  const std::span<std::byte> space = workspace(step, keys, true);
  for (int64_t first = 0; first < positions.size(); first += step) {
    const int64_t count = std::min(step, positions.size() - first);
    const QueryBlock part{
        queries.data + first * row_bytes(),
        queries.index.subspan(static_cast<size_t>(first), static_cast<size_t>(count))};
    timed(count, keys, [&] { map_->head->reduce(part, first, reduction_, space); });
  }
  return reduction_;
}

std::shared_ptr<const BoundMap> WorkerScratch::bind(const AttentionProblem& problem,
                                                    const HeadId& id, int64_t rows) const {
  const TileBackend::BindCost cost = bind_cost_for_rows(backend_, problem, rows);
  auto map = std::make_shared<BoundMap>();
  map->reservation = reserve_(cost.resident, "the keys of a head of " + problem.name());
  const MemoryReservation meanwhile =
      reserve_(cost.transient + kCheckBytes, "reading the keys of a head of " + problem.name());
  problem.check_keys_finite(id.batch, problem.kv_head(id.head));
  map->id = id;
  map->problem = &problem;
  map->head = bind_for_rows(backend_, problem, id.batch, id.head, rows);
  return map;
}

void BoundMap::bind(const TileBackend& backend, const AttentionProblem& of, const HeadId& which) {
  id = which;
  problem = &of;
  head = backend.bind(of, which.batch, which.head);
  const DeviceFacet* const device = backend.device();
  pooler = device == nullptr ? nullptr : device->pooler(*head);
}

}  // namespace attnscope
