#include "tests/support/export_fixture.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <numeric>
#include <random>
#include <thread>

#include "core/base/checked_math.h"
#include "core/tensor/memory_tensor.h"

namespace attnscope::test {
namespace {

constexpr int64_t kHeadDim = 4;

HeadTensor zeros(int64_t batch, int64_t heads, int64_t tokens, int64_t width = kHeadDim) {
  const std::vector<int64_t> shape{batch, heads, tokens, width};
  std::vector<std::byte> bytes(static_cast<size_t>(batch * heads * tokens * width) * 2);
  return {std::make_shared<MemoryTensor>("zeros", DType::bf16, shape, std::move(bytes)),
          Layout::bhsd};
}

uint64_t mix(int64_t task, int64_t row, int64_t col) {
  uint64_t h = static_cast<uint64_t>(task) * 0x9e3779b97f4a7c15ull +
               static_cast<uint64_t>(row) * 0xbf58476d1ce4e5b9ull +
               static_cast<uint64_t>(col) * 0x94d049bb133111ebull;
  h ^= h >> 31;
  h *= 0xd6e8feb86659fd93ull;
  return h ^ (h >> 32);
}

bool row_is_masked(int64_t task, int64_t row) { return mix(task, row, 77) % 50 == 0; }

void store(float value, Encoding encoding, std::byte* at) {
  switch (encoding) {
    case Encoding::f32:
      std::memcpy(at, &value, sizeof value);
      return;
    case Encoding::u8_log2:
      *at = std::byte{encode_u8_log2(value)};
      return;
    case Encoding::f16:
    case Encoding::f16_scaled: {
      const f16 half = to_f16(encoding == Encoding::f16 ? value : value * kF16Scale);
      std::memcpy(at, &half, sizeof half);
      return;
    }
  }
}

/// A tile with the buffers it points at.
struct OwnedTile {
  std::vector<std::byte> bytes;
  std::vector<std::byte*> chunks;
  std::vector<RowNorm> norms;
  Tile tile;
};

struct TileKey {
  int64_t task, row_chunk, col_chunk;
};

void fill_chunk(const Tile& tile, const TileRequest& request, int64_t first_col,
                const FedValues& values, std::byte* chunk) {
  const int64_t element = encoding_bytes(request.encoding);
  const int64_t cols = std::min(request.chunk_cols, columns_of(*tile.task, request) - first_col);
  for (int64_t r = 0; r < tile.rows.size(); ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      store(values.entry(tile.task_index, tile.rows.begin + r, first_col + c), request.encoding,
            chunk + (r * request.chunk_cols + c) * element);
    }
  }
}

OwnedTile make_tile(std::span<const HeadTask> tasks, const TileRequest& request, TileKey key,
                    int64_t segment_chunks, const FedValues& values) {
  OwnedTile owned;
  const HeadTask& task = tasks[static_cast<size_t>(key.task)];
  Tile& tile = owned.tile;
  tile.task = &task;
  tile.task_index = key.task;
  tile.rows.begin = key.row_chunk * request.chunk_rows;
  tile.rows.end = std::min(tile.rows.begin + request.chunk_rows, task.num_rows());
  tile.first_segment = key.col_chunk == 0;
  if (request.norms) {
    for (int64_t r = tile.rows.begin; r < tile.rows.end; ++r) {
      owned.norms.push_back(values.norm(key.task, r));
    }
  }
  if (!request.entries) return owned;
  const int64_t cols = columns_of(task, request);
  const int64_t end = std::min(key.col_chunk + segment_chunks, ceil_div(cols, request.chunk_cols));
  tile.cols = {key.col_chunk * request.chunk_cols, std::min(end * request.chunk_cols, cols)};
  const int64_t bytes = request.chunk_rows * request.chunk_cols * encoding_bytes(request.encoding);
  owned.bytes.resize(static_cast<size_t>(bytes * (end - key.col_chunk)));
  std::byte* next = owned.bytes.data();
  for (int64_t c = key.col_chunk; c < end; ++c) {
    const bool empty = values.is_empty(key.task, key.row_chunk, c);
    owned.chunks.push_back(empty ? nullptr : next);
    if (empty) continue;
    fill_chunk(tile, request, c * request.chunk_cols, values, next);
    next += bytes;
  }
  return owned;
}

std::vector<TileKey> all_tiles(std::span<const HeadTask> tasks, const TileRequest& request,
                               int64_t segment_chunks) {
  std::vector<TileKey> keys;
  for (size_t t = 0; t < tasks.size(); ++t) {
    const int64_t rows = ceil_div(tasks[t].num_rows(), request.chunk_rows);
    const int64_t cols =
        request.entries ? ceil_div(columns_of(tasks[t], request), request.chunk_cols) : 1;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; c += segment_chunks) {
        keys.push_back({static_cast<int64_t>(t), r, c});
      }
    }
  }
  return keys;
}

}  // namespace

int64_t columns_of(const HeadTask& task, const TileRequest& request) {
  return request.outputs ? task.problem->v().width() : task.keys.size();
}

std::shared_ptr<CallEntry> make_call(const FixtureFacts& facts) {
  AttentionProblem::Parts parts;
  const auto batch = static_cast<int64_t>(facts.branches.size());
  parts.q = zeros(batch, facts.heads, facts.queries.tokens());
  parts.k = zeros(batch, facts.heads, facts.keys.tokens());
  if (facts.value_width > 0) {
    parts.v = zeros(batch, facts.heads, facts.keys.tokens(), facts.value_width);
  }
  parts.query_tokens = facts.queries;
  parts.key_tokens = facts.keys;
  parts.score = facts.score;
  parts.mask = facts.mask;
  parts.id = {facts.step, facts.layer, facts.kind, facts.branches};
  parts.name = "step10.safetensors";
  auto call = std::make_shared<CallEntry>();
  call->file = parts.name;
  call->id = parts.id;
  call->layer_name = "transformer_blocks.3.attn1";
  call->timestep = 750.5;
  call->q_state = "qk_norm,rope";
  call->tokens = facts.tokens;
  call->model = "tiny-cogvideox";
  call->prompt = "a dog — “fast”";
  call->problem = std::make_shared<AttentionProblem>(AttentionProblem::make(std::move(parts)));
  return call;
}

FixtureFacts joint_facts() {
  FixtureFacts facts;
  facts.queries = TokenGrid::video(700, {3, 10, 23}, 10, TextPlace::start);
  facts.keys = facts.queries;
  facts.tokens = {{"[CLS]", "a", "dög", "▁runs", "fast", "[SEP]", "", "", "", ""}};
  return facts;
}

ExportSpec make_spec(const std::vector<std::shared_ptr<CallEntry>>& calls, ExportProduct product,
                     Encoding encoding) {
  ExportSpec spec;
  spec.product = product;
  spec.encoding = encoding;
  for (const auto& call : calls) {
    SelectedCall selected{call.get(), {}, {}};
    selected.batch.resize(static_cast<size_t>(call->problem->batch()));
    selected.heads.resize(static_cast<size_t>(call->problem->num_heads()));
    std::iota(selected.batch.begin(), selected.batch.end(), int64_t{0});
    std::iota(selected.heads.begin(), selected.heads.end(), int64_t{0});
    spec.calls.push_back({.selected = selected,
                          .rows = {0, call->problem->num_queries()},
                          .row_list = {},
                          .keys = {0, call->problem->num_keys()}});
  }
  spec.capture_name = "dump";
  spec.capture_hash = "0123456789abcdef";
  spec.options_json = R"({"product":"weights","dtype":"f16"})";
  spec.backend = "cpu-avx512";
  return spec;
}

float FedValues::entry(int64_t task, int64_t row, int64_t col) const {
  const uint64_t h = mix(task, row, col);
  const double unit = static_cast<double>(h % 1000003) / 1000003;
  if (logits) {
    return h % 11 == 0 ? -std::numeric_limits<float>::infinity()
                       : static_cast<float>(60 * (unit - 0.5));
  }
  return row_is_masked(task, row) ? 0.0f : static_cast<float>(std::exp2(-20 * unit));
}

RowNorm FedValues::norm(int64_t task, int64_t row) const {
  if (row_is_masked(task, row)) return {};
  const uint64_t h = mix(task, row, 1234567);
  return {1 + static_cast<double>(h % 997) / 997, static_cast<int64_t>(h % 90) - 30};
}

double decoded(float value, Encoding encoding) {
  switch (encoding) {
    case Encoding::f32:
      return value;
    case Encoding::f16:
      return to_float(to_f16(value));
    case Encoding::u8_log2:
      return decode_u8_log2(encode_u8_log2(value));
    case Encoding::f16_scaled:
      break;
  }
  return static_cast<double>(to_float(to_f16(value * kF16Scale))) / kF16Scale;
}

void feed(ExportSink& sink, const FedValues& values, const FeedOrder& order) {
  const std::span<const HeadTask> tasks = sink.tasks();
  const TileRequest request = sink.request();
  std::vector<TileKey> keys = all_tiles(tasks, request, order.segment_chunks);
  if (order.seed != 0) std::shuffle(keys.begin(), keys.end(), std::mt19937(order.seed));
  size_t number = 0;
  std::erase_if(keys, [&](const TileKey& key) {
    if (number++ % order.parts != order.part) return true;
    const OwnedTile owned = make_tile(tasks, request, key, order.segment_chunks, values);
    return sink.has_tile(owned.tile.task_index, owned.tile.rows, owned.tile.cols);
  });
  if (order.stop_after >= 0) {
    keys.resize(std::min(keys.size(), static_cast<size_t>(order.stop_after)));
  }
  sink.begin(tasks, order.threads);
  std::atomic<size_t> next{0};
  std::vector<std::exception_ptr> errors(static_cast<size_t>(order.threads));
  std::vector<std::jthread> workers;
  for (std::exception_ptr& error : errors) {
    workers.emplace_back([&] {
      try {
        for (size_t k; (k = next++) < keys.size();) {
          OwnedTile owned = make_tile(tasks, request, keys[k], order.segment_chunks, values);
          owned.tile.chunks = owned.chunks;
          owned.tile.norms = owned.norms;
          sink.consume(owned.tile);
        }
      } catch (...) {
        error = std::current_exception();
      }
    });
  }
  workers.clear();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  if (order.stop_after < 0) sink.end();
}

}  // namespace attnscope::test
