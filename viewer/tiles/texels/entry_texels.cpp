#include "viewer/tiles/texels/entry_texels.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/problem/unknown_state.h"

namespace attnscope {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

/// Adds entries of one row, the first of which is at column `col`, to texels of `side` columns that
/// begin at column `origin`.
void add_run(const float* entries, int64_t count, int64_t col, int64_t origin, int64_t side,
             TexelRow& texels) {
  const int64_t texel = (col - origin) / side;
  const int64_t first = std::min(count, origin + (texel + 1) * side - col);
  texels.add(entries, first, side, texel);
  if (first < count) texels.add(entries + first, count - first, side, texel + 1);
}

class EntryTexels : public TexelReader {
 public:
  explicit EntryTexels(std::shared_ptr<const StoredMaps> maps) : maps_(std::move(maps)) {
    for (const StoredHead& head : maps_->heads()) {
      if (head.place == 0) add_call(head);
    }
  }

  const std::vector<MapSource>& calls() const override { return calls_; }
  int64_t panel_rows(const HeadId& head) const override {
    return stored(head).group->grid.chunk_rows;
  }
  int64_t buffer_bytes(const HeadId& head) const override {
    const ChunkGrid& grid = stored(head).group->grid;
    return maps_->buffer_bytes(stored(head)) + grid.chunk_rows * grid.chunk_cols * 4;
  }

  void add(const HeadId& id, IndexRange rows, IndexRange cols, int64_t side,
           std::span<TexelRow> texels) const override {
    const StoredHead& head = stored(id);
    const std::vector<int64_t>& queries = head.facts->queries;
    for_chunks(head, rows, cols, [&](const Part& part) {
      const auto values = maps_->chunk(head, part.row_chunk, part.col_chunk);
      if (!values) return;
      for (int64_t r = part.rows.begin; r < part.rows.end; ++r) {
        const int64_t row = queries[static_cast<size_t>(r)] - rows.begin;
        add_run(values->data() + part.first + (r - part.rows.begin) * part.stride, part.cols.size(),
                head.facts->keys.begin + part.cols.begin, cols.begin, side,
                texels[static_cast<size_t>(row / side)]);
      }
    });
  }

  void entries(const HeadId& id, IndexRange rows, IndexRange cols,
               std::span<float> out) const override {
    const StoredHead& head = stored(id);
    const std::vector<int64_t>& queries = head.facts->queries;
    std::fill(out.begin(), out.end(), kMissing);
    for_chunks(head, rows, cols, [&](const Part& part) {
      const auto values = maps_->chunk(head, part.row_chunk, part.col_chunk);
      if (!values) return;
      const int64_t col = head.facts->keys.begin + part.cols.begin - cols.begin;
      const float* from = values->data() + part.first;
      for (int64_t r = part.rows.begin; r < part.rows.end; ++r, from += part.stride) {
        const int64_t row = queries[static_cast<size_t>(r)] - rows.begin;
        std::copy_n(from, part.cols.size(), out.begin() + row * cols.size() + col);
      }
    });
  }

  bool holds(const HeadId& id, IndexRange rows, IndexRange cols) const override {
    const StoredHead& head = stored(id);
    bool any = false;
    for_chunks(head, rows, cols, [&](const Part& part) {
      any = any || maps_->has_chunk(head, part.row_chunk, part.col_chunk);
    });
    return any;
  }

  std::vector<float> line(const HeadId& id, bool reverse, int64_t token) const override {
    const StoredHead& head = stored(id);
    const MapSource& call = calls_[static_cast<size_t>(id.call)];
    const IndexRange one{token, token + 1};
    const IndexRange all{0, reverse ? call.queries.tokens() : call.keys.tokens()};
    std::vector<float> values(static_cast<size_t>(all.end), kMissing);
    for_chunks(head, reverse ? all : one, reverse ? one : all, [&](const Part& part) {
      const auto chunk = maps_->chunk(head, part.row_chunk, part.col_chunk);
      if (!chunk) return;
      const float* entry = chunk->data() + part.first;
      for (int64_t r = part.rows.begin; r < part.rows.end; ++r, entry += part.stride) {
        if (reverse) {
          values[static_cast<size_t>(head.facts->queries[static_cast<size_t>(r)])] = *entry;
        } else {
          std::copy_n(entry, part.cols.size(),
                      values.begin() + head.facts->keys.begin + part.cols.begin);
        }
      }
    });
    return values;
  }

  ProbedEntry probe(const HeadId& id, int64_t query, int64_t key) const override {
    const StoredHead& head = stored(id);
    float value = kMissing;
    for_chunks(head, {query, query + 1}, {key, key + 1}, [&](const Part& part) {
      const auto chunk = maps_->chunk(head, part.row_chunk, part.col_chunk);
      if (chunk) value = (*chunk)[static_cast<size_t>(part.first)];
    });
    ProbedEntry entry{query, key, static_cast<double>(kMissing), static_cast<double>(kMissing)};
    (maps_->is_logits() ? entry.logit : entry.weight) = static_cast<double>(value);
    entry.rounded = !calls_[static_cast<size_t>(id.call)].rounding.empty();
    return entry;
  }

 private:
  /// What of a chunk is asked for: positions among the exported rows and columns, and the place of
  /// the first of these entries in the chunk.
  struct Part {
    int64_t row_chunk = 0, col_chunk = 0;
    IndexRange rows, cols;
    int64_t first = 0, stride = 0;
  };

  void add_call(const StoredHead& head) {
    const StoredFacts& facts = *head.facts;
    const StoredGroup& group = *head.group;
    MapSource call = exported_call(facts, group.batch, group.heads);
    call.name = maps_->path().string() + ": " + group.name;
    call.weights = !maps_->is_logits();
    call.logits = maps_->is_logits();
    call.rows = {facts.queries.front(), facts.queries.back() + 1};
    call.cols = facts.keys;
    const bool single = call.rows.size() != static_cast<int64_t>(facts.queries.size());
    if (single) call.first_row = facts.queries[facts.queries.size() / 2];
    call.about = single ? fmt::format("export of {} rows", facts.queries.size())
                        : fmt::format("export of queries {}:{} × keys {}:{}", call.rows.begin,
                                      call.rows.end, call.cols.begin, call.cols.end);
    call.about += fmt::format(", {}", maps_->dtype_name(head));
    if (facts.q_state.empty()) call.about += std::string(", ") + kUnknownState;
    if (maps_->dtype_name(head) == "u8") call.rounding = "u8 codes, ± 3.34 %";
    first_head_.push_back(head.task);
    calls_.push_back(std::move(call));
  }

  const StoredHead& stored(const HeadId& id) const {
    const auto heads = static_cast<int64_t>(calls_[static_cast<size_t>(id.call)].heads.size());
    const int64_t at = first_head_[static_cast<size_t>(id.call)] + id.batch * heads + id.head;
    return maps_->heads()[static_cast<size_t>(at)];
  }

  template <typename Take>
  void for_chunks(const StoredHead& head, IndexRange rows, IndexRange cols, Take take) const {
    const ChunkGrid& grid = head.group->grid;
    const std::vector<int64_t>& queries = head.facts->queries;
    const auto position = [&](int64_t token) {
      return std::lower_bound(queries.begin(), queries.end(), token) - queries.begin();
    };
    const IndexRange row_positions{position(rows.begin), position(rows.end)};
    const IndexRange keys = intersect(cols, head.facts->keys);
    const IndexRange col_positions{keys.begin - head.facts->keys.begin,
                                   keys.end - head.facts->keys.begin};
    if (row_positions.empty() || col_positions.empty()) return;
    for (int64_t rc = row_positions.begin / grid.chunk_rows;
         rc < ceil_div(row_positions.end, grid.chunk_rows); ++rc) {
      for (int64_t cc = col_positions.begin / grid.chunk_cols;
           cc < ceil_div(col_positions.end, grid.chunk_cols); ++cc) {
        Part part{rc, cc, {}, {}, 0, grid.chunk_cols};
        part.rows = intersect(row_positions, {rc * grid.chunk_rows, (rc + 1) * grid.chunk_rows});
        part.cols = intersect(col_positions, {cc * grid.chunk_cols, (cc + 1) * grid.chunk_cols});
        part.first = (part.rows.begin - rc * grid.chunk_rows) * grid.chunk_cols + part.cols.begin -
                     cc * grid.chunk_cols;
        take(part);
      }
    }
  }

  const std::shared_ptr<const StoredMaps> maps_;
  std::vector<MapSource> calls_;
  std::vector<int64_t> first_head_;  ///< of each call, among StoredMaps::heads()
};

}  // namespace

std::unique_ptr<TexelReader> read_texels(std::shared_ptr<const StoredMaps> maps) {
  return std::make_unique<EntryTexels>(std::move(maps));
}

}  // namespace attnscope
