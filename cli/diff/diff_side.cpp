#include "cli/diff/diff_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/common/head_table.h"
#include "cli/common/stored_input.h"
#include "core/base/error.h"
#include "io/capture/capture_guard.h"
#include "io/export/read/export_files.h"
#include "io/export/read/stored_map.h"

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
  std::vector<HeadName> selected(const SelectionOptions& selection, const Console&) const override {
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
            score_name(problem.score()),
            !problem.sinks().is_none(),
            false,
            &call,
            nullptr,
            {0, problem.num_keys()},
            "",
            call.tokens_of(name.batch)};
  }
  std::unique_ptr<HeadMap> open(const SideHead& head, const SideCut& cut,
                                const TileBackend* backend, const HeadMap* other) const override {
    const AttentionProblem& problem = *head.problem();
    const HeadTask task{&problem,       head.name.batch,
                        head.name.head, {0, problem.num_queries()},
                        cut.queries(),  {0, problem.num_keys()}};
    return std::make_unique<ComputedMap>(
        task, ChosenEntries{cut.keys, cut.logits ? Quantity::logits : Quantity::weights}, *backend,
        dynamic_cast<const ComputedMap*>(other));
  }

 private:
  const Capture capture_;
  std::map<HeadName, const CallEntry*> calls_;
};

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
  std::vector<HeadName> selected(const SelectionOptions& selection,
                                 const Console& console) const override {
    std::vector<HeadName> names;
    for (const StoredHead& head : select_stored(maps_, selection, console)) {
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
            !head.facts->sinks.empty(),
            maps_.is_logits(),
            nullptr,
            head.facts,
            head.facts->keys,
            std::string(maps_.dtype_name(head))};
  }
  std::unique_ptr<HeadMap> open(const SideHead& head, const SideCut& cut, const TileBackend*,
                                const HeadMap*) const override {
    return std::make_unique<StoredMap>(
        maps_, *heads_.at(head.name), cut.list ? *cut.list : head.facts->queries, cut.keys.front());
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
