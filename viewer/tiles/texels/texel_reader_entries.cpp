#include "viewer/tiles/texels/texel_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/problem/unknown_state.h"
#include "io/export/read/stored_maps.h"

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
    return maps_->reading_bytes(stored(head));
  }

  void add(const HeadId& id, IndexRange rows, IndexRange cols, int64_t side,
           std::span<TexelRow> texels) const override {
    read(id, rows, cols, [&](int64_t row, IndexRange keys, const float* entries) {
      add_run(entries, keys.size(), keys.begin, cols.begin, side,
              texels[static_cast<size_t>((row - rows.begin) / side)]);
    });
  }

  void entries(const HeadId& id, IndexRange rows, IndexRange cols,
               std::span<float> out) const override {
    std::fill(out.begin(), out.end(), kMissing);
    read(id, rows, cols, [&](int64_t row, IndexRange keys, const float* entries) {
      std::copy_n(entries, keys.size(),
                  out.begin() + (row - rows.begin) * cols.size() + keys.begin - cols.begin);
    });
  }

  bool holds(const HeadId& id, IndexRange rows, IndexRange cols) const override {
    return maps_->holds(stored(id), rows, cols);
  }

  ProbedEntry probe(const HeadId& id, int64_t query, int64_t key) const override {
    float value = kMissing;
    entries(id, {query, query + 1}, {key, key + 1}, {&value, 1});
    ProbedEntry entry{query, key, static_cast<double>(kMissing), static_cast<double>(kMissing)};
    (maps_->is_logits() ? entry.logit : entry.weight) = static_cast<double>(value);
    entry.rounded = !calls_[static_cast<size_t>(id.call)].rounding.empty();
    return entry;
  }

 private:
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

  /// Calls take(row, keys, their entries) for the runs of entries that the file has.
  template <typename Take>
  void read(const HeadId& id, IndexRange rows, IndexRange cols, Take take) const {
    const StoredHead& head = stored(id);
    maps_->read(head, rows, cols, [&](const ChunkPart& part) {
      if (part.values == nullptr) return;
      for (int64_t r = part.rows.begin; r < part.rows.end; ++r) {
        take(head.facts->queries[static_cast<size_t>(r)], part.keys,
             part.values + (r - part.rows.begin) * part.stride);
      }
    });
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
