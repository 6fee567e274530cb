#include "core/stream/panel.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <optional>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/problem/sampled_rows.h"

namespace attnscope {
namespace {

/// Of the whole allocation: a huge page, so that the system may back the tiles with some. Pages of
/// the padding before it are never touched.
constexpr std::align_val_t kArenaAlignment{size_t{2} << 20};
/// Of every part: a cache line, and the widest vector register.
constexpr int64_t kPartAlignment = 64;

int64_t product(int64_t a, int64_t b) {
  const auto bytes = checked_mul(a, b);
  if (!bytes) throw Error(ErrorCode::resource, "the tiles are too large for any memory");
  return *bytes;
}

}  // namespace

bool needs_norms(const HeadTask& task, const TileRequest& request) {
  // Without entries the norms are the product.
  const Quantity quantity = request.entries ? request.quantity : Quantity::weights;
  return needs_norms(task.problem->score(), quantity);
}

bool computes_norms(const HeadTask& task, const TileRequest& request) {
  return needs_norms(task, request) && task.known_norms.empty();
}

bool skips_empty_chunks(const HeadTask& task, const TileRequest& request) {
  return request.quantity == Quantity::weights && !task.problem->mask().is_none();
}

bool is_masked_out(const HeadTask& task, IndexRange rows, IndexRange keys) {
  const Mask& mask = task.problem->mask();
  const auto empty = [&](IndexRange queries) {
    return mask.classify(task.batch, task.head, queries, keys) == TileClass::empty;
  };
  if (task.row_list.empty()) return empty({task.row_at(rows.begin), task.row_at(rows.end - 1) + 1});
  for (int64_t i = rows.begin; i < rows.end;) {
    int64_t past = i + 1;
    while (past < rows.end && task.row_at(past) == task.row_at(past - 1) + 1) ++past;
    if (!empty({task.row_at(i), task.row_at(past - 1) + 1})) return false;
    i = past;
  }
  return true;
}

void add_area(int64_t& entries, int64_t rows, int64_t keys) {
  const auto area = checked_mul(rows, keys);
  const auto total = area ? checked_add(entries, *area) : std::nullopt;
  if (!total) throw Error(ErrorCode::resource, "the maps are too large to be counted");
  entries = *total;
}

int64_t unmasked_entries(const HeadTask& task, IndexRange rows, int64_t step) {
  const int64_t num_keys = task.problem->num_keys();
  int64_t entries = 0;
  if (task.problem->mask().is_none()) {
    add_area(entries, rows.size(), num_keys);
    return entries;
  }
  for (int64_t key = 0; key < num_keys; key += step) {
    const IndexRange keys{key, std::min(key + step, num_keys)};
    if (!is_masked_out(task, rows, keys)) add_area(entries, rows.size(), keys.size());
  }
  return entries;
}

double full_flops(const HeadTask& task) {
  return 2.0 * static_cast<double>(task.problem->head_dim()) *
         static_cast<double>(task.problem->num_keys()) * static_cast<double>(task.num_rows());
}

std::vector<int64_t> sampled_panels(const HeadTask& task, int64_t panel_rows, int64_t panels) {
  assert(task.known_norms.empty());
  std::vector<int64_t> rows;
  for (const int64_t panel : sampled_rows(ceil_div(task.num_rows(), panel_rows), panels)) {
    const int64_t end = std::min((panel + 1) * panel_rows, task.num_rows());
    for (int64_t i = panel * panel_rows; i < end; ++i) rows.push_back(task.row_at(i));
  }
  return rows;
}

QueryBlock read_query_rows(const HeadTask& task, IndexRange rows, int64_t* index, std::byte* data) {
  for (int64_t i = 0; i < rows.size(); ++i) index[i] = task.row_at(rows.begin + i);
  const std::span<const int64_t> listed(index, static_cast<size_t>(rows.size()));
  read_listed_rows(task.problem->q(), task.batch, task.head, listed, data);
  return {data, listed};
}

QueryBlock read_query_rows(const HeadTask& task, const BoundHead& head, IndexRange rows,
                           int64_t* index, std::byte* data) {
  if (!head.fetches_queries()) return read_query_rows(task, rows, index, data);
  for (int64_t i = 0; i < rows.size(); ++i) index[i] = task.row_at(rows.begin + i);
  return {nullptr, {index, static_cast<size_t>(rows.size())}};
}

void read_listed_rows(const HeadTensor& q, int64_t batch, int64_t head,
                      std::span<const int64_t> index, std::byte* data) {
  for (size_t i = 0; i < index.size();) {
    size_t past = i + 1;
    while (past < index.size() && index[past] == index[past - 1] + 1) ++past;
    q.read_rows(batch, head, {index[i], index[past - 1] + 1},
                data + static_cast<int64_t>(i) * q.row_bytes());
    i = past;
  }
}

IndexRange chunk_keys(const HeadTask& task, const TileRequest& request, int64_t first,
                      int64_t last) {
  return {task.keys.begin + first * request.chunk_cols,
          std::min(task.keys.begin + last * request.chunk_cols, task.keys.end)};
}

WorkerLayout layout_worker(std::span<const HeadTask> tasks, const TileRequest& request,
                           const TileBackend& backend, const PanelShape& shape) {
  const int64_t chunk =
      product(product(request.chunk_rows, request.chunk_cols), encoding_bytes(request.encoding));
  int64_t row_bytes = 0;
  bool norms = false;
  WorkerLayout layout;
  const HeadTask* previous = nullptr;
  for (const HeadTask& task : tasks) {
    // Heads of one call are alike.
    const bool seen = previous != nullptr && previous->problem == task.problem &&
                      previous->keys == task.keys &&
                      previous->known_norms.empty() == task.known_norms.empty();
    previous = &task;
    if (seen) continue;
    const bool one_product = request.entries && computes_norms(task, request) && shape.one_product;
    const int64_t cols =
        std::min(task.keys.size(), product(shape.segment_chunks, request.chunk_cols));
    norms |= needs_norms(task, request);
    row_bytes = std::max(row_bytes, task.problem->q().row_bytes());
    const int64_t workspace =
        request.outputs ? backend.outputs_workspace_bytes(*task.problem, shape.rows)
                        : backend.workspace_bytes(*task.problem, shape.rows, cols, one_product);
    layout.workspace_bytes = std::max(layout.workspace_bytes, workspace);
  }
  const auto place = [&](int64_t bytes) {
    const int64_t offset = layout.bytes;
    const auto end = checked_add(offset, bytes);
    if (!end) throw Error(ErrorCode::resource, "the tiles are too large for any memory");
    layout.bytes = round_up(*end, kPartAlignment);
    return offset;
  };
  layout.tiles = place(product(shape.active_chunks, chunk));
  layout.queries = place(product(shape.rows, row_bytes));
  layout.index = place(product(shape.rows, sizeof(int64_t)));
  layout.norms = place(norms ? product(shape.rows, sizeof(RowNorm)) : 0);
  layout.pointers = place(product(shape.segment_chunks, sizeof(std::byte*)));
  layout.workspace = place(layout.workspace_bytes);
  // Never touched: the sink allocates its own.
  layout.sink_bytes = product(product(shape.active_chunks, chunk), request.sink_percent) / 100;
  if (!checked_add(layout.bytes, layout.sink_bytes)) {
    throw Error(ErrorCode::resource, "the tiles are too large for any memory");
  }
  return layout;
}

WorkerBuffers::WorkerBuffers(const WorkerLayout& layout)
    : layout_(layout),
      memory_(static_cast<std::byte*>(
          ::operator new(static_cast<size_t>(layout.bytes), kArenaAlignment))) {}

void WorkerBuffers::Free::operator()(std::byte* memory) const {
  ::operator delete(memory, kArenaAlignment);
}

}  // namespace attnscope
