#include "io/export/format/export_layout.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

/// 384 × 512 was the best trade between write speed, waste at the edges and reading single tiles.
constexpr int64_t kChunkRows = 384;
constexpr int64_t kChunkCols = 512;
constexpr int64_t kReducedRows = 64;
/// Weights and keys that are kept of a tile take no more, where a single row's do not.
constexpr int64_t kMostKeptBytes = int64_t{16} << 20;
/// Of a weight and its key, and of a row's mass.
constexpr int64_t kKeptBytes = 8;
constexpr int64_t kMassBytes = 4;
/// Where that is no multiple of what chunks are aligned to.
constexpr int64_t kAlignedSide = 512;

/// The largest chunk of entries. One that is aligned to N bytes is a multiple of N.
struct ChunkShape {
  int64_t rows = kChunkRows, cols = kChunkCols;
};
ChunkShape chunk_shape(int64_t align, int64_t element_bytes) {
  if (align == 0 || kChunkRows * kChunkCols * element_bytes % align == 0) return {};
  return {kAlignedSide, std::max(kAlignedSide, align / (kAlignedSide * element_bytes))};
}

/// `/` would nest groups; control characters and white space at the end are no netCDF names.
std::string name_part(const std::string& text) {
  std::string part = text;
  for (char& c : part) {
    if (c == '/' || static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) c = '_';
  }
  return part;
}

void require(bool condition, const std::string& what) {
  if (!condition) throw usage_error("export: " + what);
}

void check_indices(const std::vector<int64_t>& indices, int64_t count, const std::string& what) {
  require(!indices.empty(), what + ": nothing is selected");
  int64_t previous = -1;
  for (int64_t index : indices) {
    require(index > previous && index < count,
            fmt::format("{}: indices must ascend within 0 to {} (got {})", what, count - 1, index));
    previous = index;
  }
}

void check_range(IndexRange range, int64_t count, const std::string& what) {
  require(range.begin >= 0 && range.begin < range.end && range.end <= count,
          fmt::format("{}: {}:{} is not within 0:{}", what, range.begin, range.end, count));
}

void check_product(const ExportSpec& spec, ScoreFunction score, const std::string& name) {
  const bool weights =
      spec.product == ExportProduct::weights || spec.product == ExportProduct::rows;
  const bool scaled = spec.encoding == Encoding::f16_scaled || spec.encoding == Encoding::u8_log2;
  require(!scaled || weights,
          fmt::format("{} cannot be stored as weights are", export_product_name(spec.product)));
  require(!(weights && spec.encoding == Encoding::f16), "weights in f16 must be scaled");
  require(!spec.gzip || weights || spec.product == ExportProduct::logits,
          fmt::format("{} cannot be compressed", export_product_name(spec.product)));
  require(
      spec.align == 0 || (weights || spec.product == ExportProduct::logits),
      fmt::format("{} have no chunks that could be aligned", export_product_name(spec.product)));
  require(spec.align == 0 || !spec.gzip, "compressed chunks are as long as they are: not aligned");
  require((spec.align & (spec.align - 1)) == 0 && spec.align >= 0,
          "chunks are aligned to a power of two");
  require(spec.product != ExportProduct::topk ||
              (std::holds_alternative<KeepLargest>(spec.detail) && spec.kept_largest().keys > 0),
          "topk needs a number of keys");
  require(spec.product != ExportProduct::threshold ||
              (std::holds_alternative<KeepAbove>(spec.detail) && spec.kept_above().weight > 0),
          "threshold needs a weight above 0");
  require(spec.product != ExportProduct::pooled ||
              (std::holds_alternative<PoolBlocks>(spec.detail) && spec.blocks().side > 0),
          "pooled maps need blocks");
  require(spec.product != ExportProduct::output || spec.encoding == Encoding::f32,
          "outputs are stored as f32");
  require(!(spec.product == ExportProduct::lse && !is_normalised(score)),
          name + ": sigmoid scores have no LSE");
  require(!is_signed(score) || spec.product == ExportProduct::logits ||
              spec.product == ExportProduct::output,
          name + ": weights of either sign are exported as logits");
  require(!(spec.product == ExportProduct::logits && is_linear(score)),
          name + ": linear scores have no logits");
}

void check_spec(const ExportSpec& spec) {
  const bool rows = spec.product == ExportProduct::rows;
  require(!spec.calls.empty(), "no call is selected");
  for (const ExportCall& call : spec.calls) {
    const SelectedCall& selected = call.selected;
    const AttentionProblem& problem = *selected.call->problem;
    const std::string& name = problem.name();
    check_product(spec, problem.score(), name);
    check_indices(selected.batch, problem.batch(), name + ": batch items");
    check_indices(selected.heads, problem.num_heads(), name + ": heads");
    require(std::max(problem.num_queries(), problem.num_keys()) <= INT32_MAX,
            name + ": indices beyond 2^31 do not fit the format");
    check_range(call.keys, problem.num_keys(), name + ": keys");
    if (spec.product == ExportProduct::output) {
      require(static_cast<bool>(problem.v()), name + ": there is no V");
      require(call.keys == IndexRange{0, problem.num_keys()},
              name + ": an output is over all keys");
    }
    if (rows) {
      check_indices(call.row_list, problem.num_queries(), name + ": rows");
    } else {
      require(call.row_list.empty(), name + ": a list of rows is for the product rows");
      check_range(call.rows, problem.num_queries(), name + ": rows");
    }
  }
}

/// Rows of a tile at most. Reductions of whole rows want them in one piece, and few at a time.
int64_t most_rows(const ExportSpec& spec, const ChunkShape& shape) {
  if (!spec.keeps_part_of_rows()) return shape.rows;
  if (spec.product != ExportProduct::topk) return kReducedRows;
  const int64_t row_bytes = kKeptBytes * spec.kept_largest().keys;
  return std::clamp(kMostKeptBytes / row_bytes, int64_t{1}, kReducedRows);
}

/// See TileRequest::sink_percent; of a request that has its chunks.
int64_t sink_percent(const ExportSpec& spec, const TileRequest& request) {
  // Compressed chunks are about as large as the entries at worst.
  if (spec.gzip) return 110;
  // Kept entries come with their keys and in lists that double as they grow.
  if (spec.product == ExportProduct::threshold) return 400;
  if (spec.product != ExportProduct::topk) return 0;
  // The entries that are kept of a chunk's rows, and a row's heap.
  const int64_t row_bytes = kKeptBytes * spec.kept_largest().keys;
  const int64_t kept = request.chunk_rows * (row_bytes + kMassBytes) + row_bytes;
  const int64_t tile = request.chunk_rows * request.chunk_cols * encoding_bytes(request.encoding);
  return std::max<int64_t>(25, ceil_div(100 * kept, tile));
}

TileRequest make_request(const ExportSpec& spec) {
  TileRequest request;
  // Pools and statistics come from a stream of reductions; their files have no entries.
  const bool pooled = spec.product == ExportProduct::pooled;
  const bool stats = spec.product == ExportProduct::stats;
  request.entries = spec.product != ExportProduct::lse && !pooled && !stats;
  const bool reduced = spec.keeps_part_of_rows();
  request.norms = spec.product != ExportProduct::logits && !reduced && !pooled && !stats;
  request.quantity = spec.product == ExportProduct::logits ? Quantity::logits : Quantity::weights;
  request.encoding = request.entries && !reduced ? spec.encoding : Encoding::f32;
  request.outputs = spec.product == ExportProduct::output;
  // Sigmoid has no norms; a file of both kinds of score cannot be asked for.
  for (const ExportCall& call : spec.calls) {
    request.norms = request.norms && is_normalised(call.selected.call->problem->score());
  }
  // As large as the largest call wants; smaller calls use the corner of a tile's chunks.
  // Shards take their tiles one after the other.
  request.in_order = spec.is_sharded();
  const ChunkShape shape = chunk_shape(spec.align, encoding_bytes(request.encoding));
  request.chunk_rows = 1;
  request.chunk_cols = 1;
  for (const ExportCall& call : spec.calls) {
    const int64_t rows = call.num_rows();
    const int64_t cols =
        request.outputs ? call.selected.call->problem->v().width() : call.keys.size();
    // Outputs come with all their channels, which are few.
    const int64_t most_cols = reduced || request.outputs ? cols : shape.cols;
    request.chunk_rows = std::max(request.chunk_rows, std::min(most_rows(spec, shape), rows));
    request.chunk_cols = std::max(request.chunk_cols, std::min(most_cols, cols));
  }
  request.sink_percent = sink_percent(spec, request);
  return request;
}

void check_size(const ExportGroup& group) {
  const ChunkGrid& grid = group.grid;
  const int64_t factors[] = {grid.heads, grid.row_chunks(), grid.col_chunks(), grid.chunk_bytes()};
  require(checked_count(factors).has_value(), group.name + ": the map is too large for a file");
}

ExportGroup make_group(const ExportCall& call, const TileRequest& request,
                       const std::string& branch) {
  const SelectedCall& selected = call.selected;
  const CallId& id = selected.call->id;
  ExportGroup group;
  group.name = fmt::format("step{:04}_layer{}_{}_{}", id.step,
                           id.layer == kNoLayer ? "none" : fmt::format("{:03}", id.layer),
                           name_part(branch), kind_name(id.kind));
  group.call = selected.call;
  group.branch = branch;
  for (int64_t item : selected.batch) {
    if (branch_of(id, item) == branch) group.batch.push_back(item);
  }
  group.heads = selected.heads;
  group.row_range = call.rows;
  group.row_list = call.row_list;
  group.keys = call.keys;
  group.has_lse = request.norms;
  ChunkGrid& grid = group.grid;
  grid.heads = static_cast<int64_t>(group.batch.size() * group.heads.size());
  grid.rows = call.num_rows();
  grid.cols = request.outputs ? selected.call->problem->v().width() : group.keys.size();
  grid.chunk_rows = std::min(request.chunk_rows, grid.rows);
  grid.chunk_cols = std::min(request.chunk_cols, grid.cols);
  grid.element_bytes = encoding_bytes(request.encoding);
  check_size(group);
  return group;
}

}  // namespace

int64_t ChunkGrid::row_chunks() const { return ceil_div(rows, chunk_rows); }
int64_t ChunkGrid::col_chunks() const { return ceil_div(cols, chunk_cols); }
int64_t ChunkGrid::chunk_number(int64_t head, int64_t row_chunk, int64_t col_chunk) const {
  return (head * row_chunks() + row_chunk) * col_chunks() + col_chunk;
}

namespace {

/// Adds chunk, forward, call, block and slot to the names of the groups that would have the same
/// name without.
void tell_places_apart(std::vector<ExportGroup>& groups) {
  std::map<std::string, std::set<ModelPlace>> places;
  for (const ExportGroup& group : groups) places[group.name].insert(group.call->id.place);
  for (ExportGroup& group : groups) {
    const ModelPlace& place = group.call->id.place;
    const std::set<ModelPlace>& alike = places[group.name];
    if (alike.size() == 1 && group.call->id.layer != kNoLayer) continue;
    // Each part where it tells some of them apart.
    const auto differs = [&](auto part) {
      return std::any_of(alike.begin(), alike.end(),
                         [&](const ModelPlace& other) { return other.*part != place.*part; });
    };
    const bool chunks = differs(&ModelPlace::chunk);
    const bool names = differs(&ModelPlace::block) || differs(&ModelPlace::slot) ||
                       group.call->id.layer == kNoLayer;
    if (chunks && place.has_chunk()) group.name += fmt::format("_chunk{:03}", place.chunk);
    const CallForward& forward = place.forward;
    if (differs(&ModelPlace::forward) && forward.is_stated()) {
      group.name += fmt::format("_forward{:04}", forward.forward);
      if (forward.call > 0) group.name += fmt::format("_call{:03}", forward.call);
    }
    if (!names) continue;
    for (const std::string& part : {place.block, place.slot}) {
      if (!part.empty()) group.name += "_" + name_part(part);
    }
  }
}

/// Leaves the groups and heads that the spec's share has. What is decided by all calls together,
/// the names and what a request wants, stays as it is.
void keep_share(const ExportSpec& spec, ExportLayout& layout) {
  std::vector<ExportGroup> kept;
  for (ExportGroup& group : layout.groups) {
    for (size_t c = 0; c < spec.calls.size(); ++c) {
      const std::vector<int64_t>& heads = spec.share->heads[c];
      if (spec.calls[c].selected.call != group.call || heads.empty()) continue;
      group.heads = heads;
      group.grid.heads = static_cast<int64_t>(group.batch.size() * heads.size());
      kept.push_back(std::move(group));
      break;
    }
  }
  layout.groups = std::move(kept);
}

}  // namespace

ExportLayout make_export_layout(const ExportSpec& spec) {
  check_spec(spec);
  ExportLayout layout;
  layout.request = make_request(spec);
  layout.reduced = spec.keeps_part_of_rows();
  if (layout.request.entries) {
    layout.entries_name = layout.request.outputs                        ? "output"
                          : layout.request.quantity == Quantity::logits ? "logits"
                                                                        : "weights";
  }
  for (const ExportCall& call : spec.calls) {
    std::vector<std::string> branches;
    for (int64_t item : call.selected.batch) {
      const std::string branch = branch_of(call.selected.call->id, item);
      if (std::find(branches.begin(), branches.end(), branch) == branches.end()) {
        branches.push_back(branch);
      }
    }
    for (const std::string& branch : branches) {
      layout.groups.push_back(make_group(call, layout.request, branch));
    }
  }
  tell_places_apart(layout.groups);
  std::set<std::string> names;
  for (ExportGroup& group : layout.groups) {
    // They differ in replaced characters only; `branch`, `block`, `slot`, `chunk` and
    // `forward` tell them apart.
    const std::string name = group.name;
    for (int n = 2; !names.insert(group.name).second; ++n) {
      group.name = fmt::format("{}_{}", name, n);
    }
  }
  if (spec.share) keep_share(spec, layout);
  return layout;
}

}  // namespace attnscope
