#include "viewer/tiles/texels/texel_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/problem/unknown_state.h"
#include "io/export/read/stored_blocks.h"

namespace attnscope {
namespace {

/// Rows of blocks that are read together.
constexpr int64_t kPanelBlocks = 16;

class BlockTexels : public TexelReader {
 public:
  explicit BlockTexels(std::shared_ptr<const StoredBlocks> blocks) : blocks_(std::move(blocks)) {
    for (const StoredBlockGroup& group : blocks_->groups()) {
      MapSource call = exported_call(group.facts, group.batch, group.heads);
      call.name = blocks_->path().string();
      call.logits = false;
      call.block = group.block;
      call.rows = group.rows;
      call.cols = group.cols;
      call.about =
          fmt::format("export of queries {}:{} × keys {}:{} in blocks of {}", call.rows.begin,
                      call.rows.end, call.cols.begin, call.cols.end, group.block);
      if (group.facts.q_state.empty()) call.about += std::string(", ") + kUnknownState;
      calls_.push_back(std::move(call));
    }
  }

  const std::vector<MapSource>& calls() const override { return calls_; }
  int64_t panel_rows(const HeadId& head) const override { return kPanelBlocks * group(head).block; }
  int64_t buffer_bytes(const HeadId& head) const override {
    return (kPanelBlocks + 1) * group(head).block_cols * 8;
  }

  /// A texel takes of a block what lies within it: the entries' number, and the mean as if each of
  /// them had it. Exact where texels are made of whole blocks.
  void add(const HeadId& id, IndexRange rows, IndexRange cols, int64_t side,
           std::span<TexelRow> texels) const override {
    const StoredBlockGroup& g = group(id);
    const IndexRange there = intersect(rows, g.rows);
    const IndexRange block_cols = blocks_within(intersect(cols, g.cols), g.cols, g.block);
    const IndexRange block_rows = blocks_within(there, g.rows, g.block);
    if (block_rows.empty() || block_cols.empty()) return;
    for (int64_t first = block_rows.begin; first < block_rows.end; first += kPanelBlocks) {
      const IndexRange panel{first, std::min(block_rows.end, first + kPanelBlocks)};
      const PooledMap map = blocks_->read(g, head_of(id, g), panel, block_cols);
      for (int64_t br = panel.begin; br < panel.end; ++br) {
        const IndexRange block_row = intersect(there, tokens_of(br, g.rows, g.block));
        add_block_row(map, br - panel.begin, g, block_cols, block_row, rows.begin, cols, side,
                      texels);
      }
    }
  }

  void entries(const HeadId&, IndexRange, IndexRange, std::span<float>) const override {
    throw usage_error(blocks_->path().string() + ": holds blocks; it has no single entries");
  }

  bool holds(const HeadId& id, IndexRange rows, IndexRange cols) const override {
    return !intersect(rows, group(id).rows).empty() && !intersect(cols, group(id).cols).empty();
  }

  ProbedEntry probe(const HeadId& id, int64_t query, int64_t key) const override {
    const StoredBlockGroup& g = group(id);
    constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
    ProbedEntry entry{query, key, kMissing, kMissing};
    entry.block = g.block;
    if (!g.rows.contains(query) || !g.cols.contains(key)) return entry;
    const int64_t row = (query - g.rows.begin) / g.block;
    const int64_t col = (key - g.cols.begin) / g.block;
    const PooledMap cell = blocks_->read(g, head_of(id, g), {row, row + 1}, {col, col + 1});
    entry.weight = static_cast<double>(cell.max.front());
    entry.mean = static_cast<double>(cell.mean.front());
    return entry;
  }

 private:
  static IndexRange blocks_within(IndexRange tokens, IndexRange all, int64_t block) {
    if (tokens.empty()) return {0, 0};
    return {(tokens.begin - all.begin) / block, ceil_div(tokens.end - all.begin, block)};
  }
  static IndexRange tokens_of(int64_t number, IndexRange all, int64_t block) {
    return intersect(all, {all.begin + number * block, all.begin + (number + 1) * block});
  }

  /// Adds row `row` of the map, as far as it covers the queries `tokens`.
  static void add_block_row(const PooledMap& map, int64_t row, const StoredBlockGroup& g,
                            IndexRange block_cols, IndexRange tokens, int64_t row_origin,
                            IndexRange cols, int64_t side, std::span<TexelRow> texels) {
    for (int64_t bc = block_cols.begin; bc < block_cols.end; ++bc) {
      const IndexRange keys = intersect(cols, tokens_of(bc, g.cols, g.block));
      const auto at = static_cast<size_t>(row * map.cols + bc - block_cols.begin);
      for (int64_t tr = (tokens.begin - row_origin) / side;
           tr <= (tokens.end - 1 - row_origin) / side; ++tr) {
        const IndexRange texel_row{row_origin + tr * side, row_origin + (tr + 1) * side};
        const int64_t height = intersect(tokens, texel_row).size();
        TexelRow& to = texels[static_cast<size_t>(tr)];
        for (int64_t tc = (keys.begin - cols.begin) / side;
             tc <= (keys.end - 1 - cols.begin) / side; ++tc) {
          const IndexRange texel_col{cols.begin + tc * side, cols.begin + (tc + 1) * side};
          const int64_t entries = height * intersect(keys, texel_col).size();
          const auto texel = static_cast<size_t>(tc);
          to.max[texel] = std::max(to.max[texel], map.max[at]);
          to.sum[texel] += static_cast<double>(map.mean[at]) * static_cast<double>(entries);
          to.count[texel] += entries;
        }
      }
    }
  }

  const StoredBlockGroup& group(const HeadId& id) const {
    return blocks_->groups()[static_cast<size_t>(id.call)];
  }
  static int64_t head_of(const HeadId& id, const StoredBlockGroup& g) {
    return id.batch * static_cast<int64_t>(g.heads.size()) + id.head;
  }

  const std::shared_ptr<const StoredBlocks> blocks_;
  std::vector<MapSource> calls_;
};

}  // namespace

std::unique_ptr<TexelReader> read_texels(std::shared_ptr<const StoredBlocks> blocks) {
  return std::make_unique<BlockTexels>(std::move(blocks));
}

}  // namespace attnscope
