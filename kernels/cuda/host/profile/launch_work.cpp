#include "kernels/cuda/host/profile/launch_work.h"

#include <algorithm>

namespace attnscope::cuda {
namespace {

/// The entries, the keys and the mask's bytes in a range of key tiles.
struct Extent {
  int64_t entries = 0;     ///< of tiles that are not empty
  int64_t keys = 0;        ///< of columns with any such tile
  int64_t mask_bytes = 0;  ///< words, bits and biases
};

Extent extent_of(const CallArgs& call, int first_tile, int end_tile, const CallFacts& facts) {
  Extent extent;
  for (int tile = first_tile; tile < end_tile; ++tile) {
    const int64_t keys = std::min<int64_t>(kTileKeys, call.num_keys - int64_t{tile} * kTileKeys);
    MaskedColumn column{.rows = call.rows};
    if (!facts.masked.empty()) {
      column = facts.masked[static_cast<size_t>(tile - call.mask.first)];
      extent.mask_bytes += column.bytes + int64_t{4} * call.row_tiles;
    }
    extent.entries += column.rows * keys;
    if (column.rows > 0) extent.keys += keys;
  }
  return extent;
}

/// With the flops of the products and the bytes of what goes in.
LaunchWork tiles_work(const char* kernel, const CallArgs& call, const Extent& extent,
                      const CallFacts& facts) {
  LaunchWork work{.kernel = kernel, .product = facts.product};
  int64_t bytes = extent.mask_bytes;
  if (facts.stored) {
    bytes += extent.entries * int64_t{sizeof(float)};
  } else {
    work.flops = 2.0 * static_cast<double>(extent.entries) * facts.head_dim;
    bytes += (call.rows + extent.keys) * facts.row_bytes;
  }
  work.bytes = static_cast<double>(bytes);
  return work;
}

int64_t bytes_of(const auto* array, int64_t count) {
  return array == nullptr ? 0 : count * static_cast<int64_t>(sizeof(*array));
}

int splits_of(int count, int at_a_time) { return (count + at_a_time - 1) / at_a_time; }

}  // namespace

LaunchWork row_sums_work(const NormArgs& args, bool moments, const CallFacts& facts) {
  const CallArgs& call = args.call;
  const int end = std::min(args.end_segment * kSegmentTiles, call.key_tiles);
  const Extent extent = extent_of(call, args.first_segment * kSegmentTiles, end, facts);
  LaunchWork work = tiles_work(moments ? "row sums, moments" : "row sums", call, extent, facts);
  const int segments = args.end_segment - args.first_segment;
  work.splits = splits_of(segments, args.split_segments);
  work.bytes += static_cast<double>(bytes_of(args.parts, int64_t{segments} * call.rows));
  return work;
}

LaunchWork entries_work(const EmitArgs& args, int split_tiles, const CallFacts& facts) {
  const CallArgs& call = args.call;
  LaunchWork work = tiles_work(args.logits ? "logits" : "entries", call,
                               extent_of(call, args.first_tile, args.end_tile, facts), facts);
  const int tiles = args.end_tile - args.first_tile;
  work.splits = splits_of(tiles, split_tiles);
  // Masked entries are written too.
  const int64_t keys = std::min<int64_t>(int64_t{tiles} * kTileKeys,
                                         call.num_keys - int64_t{args.first_tile} * kTileKeys);
  work.bytes += static_cast<double>(bytes_of(args.scales, call.rows) +
                                    call.rows * keys * encoding_bytes(args.encoding));
  return work;
}

LaunchWork texels_work(const TexelArgs& args, int split_tiles, const CallFacts& facts) {
  const CallArgs& call = args.call;
  LaunchWork work =
      tiles_work("texels", call, extent_of(call, args.first_tile, args.end_tile, facts), facts);
  const int tiles = args.end_tile - args.first_tile;
  work.splits = splits_of(tiles, split_tiles);
  const int64_t side = int64_t{1} << args.level;
  const int64_t keys = std::min<int64_t>(int64_t{tiles} * kTileKeys,
                                         call.num_keys - int64_t{args.first_tile} * kTileKeys);
  const int64_t texels = (call.rows + side - 1) / side * ((keys + side - 1) / side);
  work.bytes += static_cast<double>(bytes_of(args.scales, call.rows) + bytes_of(args.max, texels) +
                                    bytes_of(args.mean, texels));
  return work;
}

LaunchWork reductions_work(const ReduceArgs& args, const CallFacts& facts) {
  const CallArgs& call = args.call;
  LaunchWork work =
      tiles_work("reductions", call, extent_of(call, args.first_tile, args.end_tile, facts), facts);
  const int64_t tiles = args.end_tile - args.first_tile;
  work.splits = static_cast<int>(tiles);
  const int64_t keys =
      std::min<int64_t>(tiles * kTileKeys, call.num_keys - int64_t{args.first_tile} * kTileKeys);
  int64_t bytes = bytes_of(args.scales, call.rows) + bytes_of(args.rows, call.rows) +
                  bytes_of(args.key_places, keys) + bytes_of(args.row_sums, tiles * call.rows);
  // At least one run a tile; how keys are cut into more is not known here.
  bytes += bytes_of(args.masses, tiles * call.rows);
  bytes += bytes_of(args.columns, keys) + bytes_of(args.diagonals, keys + call.rows);
  if (args.block > 0) {
    const int64_t blocks = splits_of(call.rows, args.block) * (keys / args.block + 1);
    bytes += bytes_of(args.block_sums, blocks) + bytes_of(args.block_maxima, blocks);
  }
  work.bytes += static_cast<double>(bytes);
  return work;
}

LaunchWork combine_tiles_work(const CombineArgs& args) {
  const int64_t rows = args.rows;
  const int64_t bytes = bytes_of(args.row_sums, rows * (args.end_tile - args.first_tile)) +
                        bytes_of(args.masses, rows * args.run_count) +
                        bytes_of(args.runs, args.run_count) + bytes_of(args.totals, rows) +
                        bytes_of(args.row_masses, rows * args.segments);
  return {.kernel = "combine tiles", .bytes = static_cast<double>(bytes)};
}

LaunchWork gemm_work(const char* what, const GemmShape& shape) {
  const auto size = [](int64_t value) { return std::to_string(value); };
  const int64_t inputs = shape.left * shape.m * shape.k + shape.right * shape.k * shape.n;
  const int64_t results = shape.batches * shape.m * shape.n * int64_t{sizeof(float)};
  return {.kernel = std::string(what) + " " + size(shape.m) + "x" + size(shape.n) + "x" +
                    size(shape.k) + " x " + size(shape.batches),
          .product = "cublas",
          .flops = 2.0 * static_cast<double>(shape.m * shape.n) *
                   static_cast<double>(shape.k * shape.batches),
          .bytes = static_cast<double>(inputs * shape.element_bytes + results)};
}

}  // namespace attnscope::cuda
