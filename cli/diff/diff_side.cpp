#include "cli/diff/diff_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/common/head_table.h"
#include "cli/common/stored_input.h"
#include "core/base/error.h"
#include "io/capture/capture_guard.h"
#include "io/export/read/export_files.h"
#include "io/export/read/stored_maps.h"

namespace attnscope {
namespace {

class CaptureSide final : public DiffSide {
 public:
  explicit CaptureSide(Capture capture) : capture_(std::move(capture)) {
    for (const CallEntry& call : capture_.calls()) {
      for (int64_t b = 0; b < call.problem->batch(); ++b) {
        for (int64_t h = 0; h < call.problem->num_heads(); ++h) {
          calls_[head_name(call.id, b, h)] = &call;
        }
      }
    }
  }
  const std::filesystem::path& path() const override { return capture_.path(); }
  const Capture* capture() const override { return &capture_; }
  std::vector<std::filesystem::path> files() const override { return guarded_inputs(capture_); }

  std::vector<HeadName> heads() const override {
    std::vector<HeadName> names;
    for (const auto& [name, call] : calls_) names.push_back(name);
    return names;
  }
  std::vector<HeadName> selected(const SelectionOptions& selection) const override {
    std::vector<HeadName> names;
    for (const SelectedCall& call : capture_.select(parse_selection(selection))) {
      for (const int64_t item : call.batch) {
        for (const int64_t head : call.heads) {
          names.push_back(head_name(call.call->id, item, head));
        }
      }
    }
    return names;
  }
  SideHead head(const HeadName& name) const override {
    const CallEntry& call = *calls_.at(name);
    const AttentionProblem& problem = *call.problem;
    return {name,
            problem.name(),
            &problem.query_tokens(),
            &problem.key_tokens(),
            std::string(score_name(problem.score())),
            false,
            &problem,
            nullptr,
            {0, problem.num_keys()},
            "",
            call.tokens_of(name.batch)};
  }
  std::unique_ptr<MapSide> open(const SideHead& head, const SideCut& cut,
                                const TileBackend* backend, const MapSide* other) const override {
    const AttentionProblem& problem = *head.problem;
    const HeadTask task{&problem,       head.name.batch,
                        head.name.head, {0, problem.num_queries()},
                        cut.queries(),  {0, problem.num_keys()}};
    return std::make_unique<ComputedSide>(
        task, SideEntries{cut.keys, cut.logits ? Quantity::logits : Quantity::weights}, *backend,
        dynamic_cast<const ComputedSide*>(other));
  }

 private:
  const Capture capture_;
  std::map<HeadName, const CallEntry*> calls_;
};

/// An exported map, as it stands in the file.
class StoredSide final : public MapSide {
 public:
  /// The rows of some queries, ascending, of those that the file has, over a range of keys. Borrows
  /// the file and the head.
  StoredSide(const StoredMaps& maps, const StoredHead& head, std::vector<int64_t> queries,
             IndexRange keys);

  int64_t rows() const override { return std::ssize(queries_); }
  int64_t keys() const override { return keys_.size(); }
  int64_t panel_rows() const override;
  double flops() const override { return 0; }
  int64_t resident_bytes() const override;
  int64_t reader_bytes(int64_t rows) const override;
  int64_t workspace_bytes(int64_t) const override { return 0; }
  std::unique_ptr<MapRows> reader(int64_t rows) const override;

 private:
  const StoredMaps& maps_;
  const StoredHead& head_;
  const std::vector<int64_t> queries_;
  const IndexRange keys_;
};

class StoredRows final : public MapRows {
 public:
  StoredRows(const StoredMaps& maps, const StoredHead& head, std::span<const int64_t> queries,
             IndexRange keys, int64_t rows)
      : maps_(maps),
        head_(head),
        queries_(queries),
        keys_(keys),
        entries_(static_cast<size_t>(rows * keys.size())) {}

  void read(IndexRange rows, std::span<std::byte>) override {
    first_ = rows.begin;
    const auto count = static_cast<size_t>(rows.size());
    maps_.read_rows(head_, queries_.subspan(static_cast<size_t>(first_), count), keys_,
                    std::span(entries_).first(count * static_cast<size_t>(keys_.size())));
  }
  std::span<float> row(int64_t i) override {
    return std::span(entries_).subspan(static_cast<size_t>(i * keys_.size()),
                                       static_cast<size_t>(keys_.size()));
  }
  double lse(int64_t i) const override {
    const std::vector<int64_t>& rows = head_.facts->queries;
    const int64_t query = queries_[static_cast<size_t>(first_ + i)];
    return maps_.lse(head_, std::lower_bound(rows.begin(), rows.end(), query) - rows.begin());
  }

 private:
  const StoredMaps& maps_;
  const StoredHead& head_;
  const std::span<const int64_t> queries_;
  const IndexRange keys_;
  int64_t first_ = 0;
  std::vector<float> entries_;
};

StoredSide::StoredSide(const StoredMaps& maps, const StoredHead& head, std::vector<int64_t> queries,
                       IndexRange keys)
    : maps_(maps), head_(head), queries_(std::move(queries)), keys_(keys) {}

/// A chunk that is unpacked serves all of its rows.
int64_t StoredSide::panel_rows() const { return head_.group->grid.chunk_rows; }

int64_t StoredSide::resident_bytes() const {
  return std::ssize(queries_) * static_cast<int64_t>(sizeof(int64_t));
}

int64_t StoredSide::reader_bytes(int64_t rows) const {
  return maps_.reading_bytes(head_) + rows * keys_.size() * static_cast<int64_t>(sizeof(float));
}

std::unique_ptr<MapRows> StoredSide::reader(int64_t rows) const {
  return std::make_unique<StoredRows>(maps_, head_, queries_, keys_, rows);
}

class ExportSide final : public DiffSide {
 public:
  explicit ExportSide(const std::filesystem::path& path) : maps_(path) {
    for (const StoredHead& head : maps_.heads()) {
      heads_[stored_name(*head.facts, head.batch, head.head)] = &head;
    }
  }
  const std::filesystem::path& path() const override { return maps_.path(); }
  std::vector<std::filesystem::path> files() const override {
    return files_of_export(maps_.path(), maps_.stored());
  }

  std::vector<HeadName> heads() const override {
    std::vector<HeadName> names;
    for (const auto& [name, head] : heads_) names.push_back(name);
    return names;
  }
  std::vector<HeadName> selected(const SelectionOptions& selection) const override {
    std::vector<HeadName> names;
    for (const StoredHead& head : select_stored(maps_, selection)) {
      names.push_back(stored_name(*head.facts, head.batch, head.head));
    }
    return names;
  }
  SideHead head(const HeadName& name) const override {
    const StoredHead& head = *heads_.at(name);
    return {name,
            fmt::format("{} of {}", stored_label(head), one_line(path().filename().string())),
            &head.facts->query_tokens,
            &head.facts->key_tokens,
            head.facts->score,
            maps_.is_logits(),
            nullptr,
            &head.facts->queries,
            head.facts->keys,
            std::string(maps_.dtype_name(head)),
            {}};
  }
  std::unique_ptr<MapSide> open(const SideHead& head, const SideCut& cut, const TileBackend*,
                                const MapSide*) const override {
    return std::make_unique<StoredSide>(maps_, *heads_.at(head.name),
                                        cut.list ? *cut.list : *head.queries, cut.keys.front());
  }

 private:
  const StoredMaps maps_;
  std::map<HeadName, const StoredHead*> heads_;
};

}  // namespace

QueryList shared_list(std::vector<int64_t> queries, const QueryList& before) {
  if (before && *before == queries) return before;
  return std::make_shared<const std::vector<int64_t>>(std::move(queries));
}

std::unique_ptr<DiffSide> make_diff_side(Capture capture) {
  return std::make_unique<CaptureSide>(std::move(capture));
}

std::unique_ptr<DiffSide> make_diff_side(const std::filesystem::path& path) {
  return std::make_unique<ExportSide>(path);
}

}  // namespace attnscope
