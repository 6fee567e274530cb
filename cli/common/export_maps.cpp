#include "cli/common/export_maps.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/common/stored_input.h"
#include "io/export/read/stored_blocks.h"

namespace attnscope {
namespace {

class EntryMaps : public ExportMaps {
 public:
  explicit EntryMaps(const std::filesystem::path& path) : maps_(path) {
    for (const StoredHead& h : maps_.heads()) {
      const StoredFacts& f = *h.facts;
      ExportedMap map{stored_name(f, h.batch, h.head),
                      f.model,
                      f.score,
                      f.mask,
                      f.q_state,
                      f.query_tokens,
                      f.key_tokens,
                      {f.queries.front(), f.queries.back() + 1},
                      f.keys,
                      0};
      const auto rows = static_cast<int64_t>(f.queries.size());
      if (rows != map.rows.size()) map.single_rows = rows;
      heads_.push_back(std::move(map));
    }
  }

  const std::vector<ExportedMap>& heads() const override { return heads_; }
  int64_t unit() const override { return 1; }
  bool is_logits() const override { return maps_.is_logits(); }
  std::string dtype_name() const override {
    return std::string(maps_.dtype_name(maps_.heads().front()));
  }
  const ExportManifest& stored() const override { return maps_.stored(); }
  int64_t buffer_bytes() const override {
    int64_t most = 0;
    for (const StoredHead& head : maps_.heads()) most = std::max(most, maps_.reading_bytes(head));
    return most;
  }
  StoredPooledMap pooled(size_t head, IndexRange rows, IndexRange cols,
                         int64_t block) const override {
    return pool_stored(maps_, maps_.heads()[head], rows, cols, block);
  }

 private:
  const StoredMaps maps_;
  std::vector<ExportedMap> heads_;
};

class BlockMaps : public ExportMaps {
 public:
  explicit BlockMaps(const std::filesystem::path& path) : blocks_(path) {
    for (const StoredBlockGroup& g : blocks_.groups()) {
      const StoredFacts& f = g.facts;
      for (int64_t place = 0; place < g.num_heads(); ++place) {
        const auto heads = static_cast<int64_t>(g.heads.size());
        heads_.push_back({stored_name(f, g.batch[static_cast<size_t>(place / heads)],
                                      g.heads[static_cast<size_t>(place % heads)]),
                          f.model, f.score, f.mask, f.q_state, f.query_tokens, f.key_tokens, g.rows,
                          g.cols, 0});
        places_.push_back({&g, place});
      }
    }
  }

  const std::vector<ExportedMap>& heads() const override { return heads_; }
  int64_t unit() const override { return blocks_.groups().front().block; }
  bool is_logits() const override { return false; }
  std::string dtype_name() const override { return fmt::format("blocks of {}", unit()); }
  const ExportManifest& stored() const override { return blocks_.stored(); }
  int64_t buffer_bytes() const override {
    int64_t most = 0;
    for (const StoredBlockGroup& g : blocks_.groups()) most = std::max(most, g.block_cols * 8);
    return most;
  }
  StoredPooledMap pooled(size_t head, IndexRange rows, IndexRange cols,
                         int64_t block) const override {
    StoredPooledMap result;
    result.map = blocks_.pooled(*places_[head].first, places_[head].second, rows, cols, block);
    return result;
  }

 private:
  const StoredBlocks blocks_;
  std::vector<ExportedMap> heads_;
  std::vector<std::pair<const StoredBlockGroup*, int64_t>> places_;
};

}  // namespace

std::unique_ptr<ExportMaps> open_export_maps(const std::filesystem::path& path) {
  if (read_manifest(path).product == "pooled") return std::make_unique<BlockMaps>(path);
  return std::make_unique<EntryMaps>(path);
}

}  // namespace attnscope
