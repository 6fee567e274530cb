#include "cli/mask/choice_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/common/console.h"
#include "cli/common/left_out_names.h"
#include "cli/mask/saved_blocks.h"
#include "cli/run/forecast.h"
#include "cli/run/run_backend.h"
#include "cli/run/run_plan.h"
#include "cli/run/run_steps.h"
#include "cli/run/shard_option.h"
#include "core/base/budget_error.h"
#include "core/base/error.h"
#include "core/patterns/mask_measurement.h"
#include "core/problem/signed_weights.h"
#include "core/stream/row_stream.h"
#include "io/capture/capture_guard.h"
#include "io/capture/selection_share.h"
#include "io/export/format/export_part_json.h"
#include "io/files/checksum.h"
#include "io/files/file_ending.h"
#include "io/files/file_text.h"
#include "io/results/output_provenance.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

void add_digest(const std::filesystem::path& file, OrderedJson& digests) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return;
  int64_t bytes = 0;
  digests[file.filename().string()] =
      fmt::format("{:016x}", file_checksum(file, std::stop_token(), &bytes));
}

/// Digests of the files that masks are read from: blocks with what is said of them, and a tree's
/// with those of the files that it names.
void add_file_digests(const std::filesystem::path& file, OrderedJson& digests) {
  add_digest(file, digests);
  // Which of its planes is whose.
  if (file.extension() == ".npy") add_digest(block_facts_path(file), digests);
  if (file.extension() != ".json") return;
  const OrderedJson tree = OrderedJson::parse(read_file_text(file), nullptr, false).flatten();
  for (const auto& [place, word] : tree.items()) {
    if (!word.is_string()) continue;
    const std::filesystem::path named = file.parent_path() / word.get<std::string>();
    if (named.extension() == ".npy") add_file_digests(named, digests);
  }
}

}  // namespace

SelectedHead ChoiceRun::selected_head(const HeadTask& task) const {
  const auto of = std::find_if(selected_.begin(), selected_.end(), [&](const SelectedCall& call) {
    return call.call->problem.get() == task.problem &&
           std::find(call.batch.begin(), call.batch.end(), task.batch) != call.batch.end();
  });
  return {task.batch, task.head, of->heads};
}

std::vector<Mask> ChoiceRun::build(const HeadTask& task, ScoreKeeper* keeper) {
  std::vector<Mask> masks;
  for (const MaskChoice& choice : choices_) {
    masks.push_back(
        choice.build(*task.problem, selected_head(task), {backend(), budget(), stop_, keeper}));
  }
  return masks;
}

std::vector<SelectedCall> ChoiceRun::choose() {
  choices_ = parse();
  selected_ = select();
  for (const SelectedCall& selected : selected_) {
    const AttentionProblem& problem = *selected.call->problem;
    require_one_sign(problem, "a share that a mask keeps");
    if (is_normalised(problem.score())) continue;
    throw usage_error(product_ +
                      ": rows of sigmoid scores do not sum to 1, so no share of them is kept");
  }
  make_heads(selected_);
  check_calls();
  return chosen_;
}

/// All heads of the calls, whose lines are still to be found.
void ChoiceRun::make_heads(const std::vector<SelectedCall>& calls) {
  chosen_ = calls;
  heads_.clear();
  for (const SelectedCall& selected : chosen_) {
    const AttentionProblem& problem = *selected.call->problem;
    for (const int64_t b : selected.batch) {
      for (const int64_t h : selected.heads) {
        heads_.push_back({&problem, b, h, {0, problem.num_queries()}, {}, {0, problem.num_keys()}});
      }
    }
  }
  lines_.assign(heads_.size(), OrderedJson::array());
}

void ChoiceRun::check_plan() {
  for (const SelectedCall& call : calls()) {
    for (const MaskChoice& choice : choices_) {
      choice.check(*call.call->problem, call.heads, {backend(), budget()});
    }
  }
}

OrderedJson ChoiceRun::result_options() const {
  OrderedJson options = own_options();
  options.update(selection_json(common_.selection));
  options["score"] = score_text(calls());
  add_left_out(options, common_.capture);
  options["backend"] = recorded_backend(backend(), calls());
  OrderedJson& files = options["files"] = OrderedJson::object();
  for (const std::string& word : words()) add_file_digests(word, files);
  return options;
}

void ChoiceRun::keep_share(const SelectionShare& share) { make_heads(share.of(selected_)); }

RunPlan ChoiceRun::forecast() {
  RunPlan plan{.command = product_};
  if (!heads_.empty()) {
    const RowStream stream = plan_row_stream(heads_, backend(), budget());
    plan = forecast_run(product_, heads_, stream.request, stream.plan, backend(), budget(), true);
  }
  plan.masks = std::ssize(choices_);
  plan.seconds_note = " for the weights; masks come on top";
  return plan;
}

int64_t ChoiceRun::picked_bytes(const HeadTask& task, bool best_blocks) {
  const int64_t rows = MaskMeasurement::kTileRows * backend().workers();
  int64_t bytes = 0;
  for (const MaskChoice& choice : choices_) {
    bytes += choice.measuring_bytes(*task.problem, rows, best_blocks);
  }
  return bytes;
}

/// Throws BudgetError where a head does not fit what is left.
void ChoiceRun::check_memory() {
  int64_t most = 0;
  const AttentionProblem* looked_at = nullptr;
  for (const HeadTask& task : heads_) {
    if (task.problem == looked_at) continue;
    looked_at = task.problem;
    int64_t bytes = measuring_bytes(task);
    for (const MaskChoice& choice : choices_) {
      bytes = std::max(bytes, choice.least_build_bytes(*task.problem, backend()));
    }
    most = std::max(most, kept_bytes(task) + bytes);
  }
  const MemoryRoom room = budget().room();
  if (most > room.bytes) throw BudgetError(room, most);
}

/// Tells of blocks that were saved of other heads; nothing else has to be checked of a mask.
void ChoiceRun::check(const CheckedRun& scope, std::span<const HeadTask>) {
  if (!team_.is_first()) return;
  for (const std::string& note : other_head_notes(choices_, calls(), capture(), scope.stop())) {
    console_.say("note: " + note);
  }
}

std::vector<std::filesystem::path> ChoiceRun::inputs() const {
  std::vector<std::filesystem::path> inputs = guarded_inputs(capture());
  for (const std::string& word : words()) {
    inputs.emplace_back(word);
    inputs.push_back(block_facts_path(word));
  }
  return inputs;
}

/// The lines of a head that another run or process found.
std::optional<int64_t> ChoiceRun::take(const OrderedJson& json) {
  try {
    const OrderedJson& lines = json.at("lines");
    if (lines.empty() || lines.size() != lines_of_head()) return std::nullopt;
    const std::optional<int64_t> place = place_of(parse_name_json(lines.front()));
    for (const OrderedJson& line : lines) check_line(line);
    if (place) lines_[static_cast<size_t>(*place)] = lines;
    return place;
  } catch (const OrderedJson::exception&) {
    return std::nullopt;
  }
}

/// The heads that are left, or this process's of them.
void ChoiceRun::measure(const std::stop_token& stop) {
  stop_ = stop;
  begin_measuring();
  const int64_t entries = plan_row_stream(heads_, backend(), budget()).plan.entries;
  constexpr int64_t kSteps = 1000;
  std::vector<int64_t> left;
  for (int64_t place = 0; place < std::ssize(heads_); ++place) {
    if (!std::binary_search(found().there().begin(), found().there().end(), place)) {
      left.push_back(place);
    }
  }
  const int64_t all = std::ssize(left);
  if (all == 0) return;
  Progress progress(console_, product_, all * kSteps,
                    static_cast<double>(entries) / static_cast<double>(all * kSteps), "entries");
  team_.begin_units(all);
  while (const std::optional<int64_t> unit = team_.next_unit()) {
    const auto place = static_cast<size_t>(left[static_cast<size_t>(*unit)]);
    lines_[place] = measure_head(heads_[place], [&](double share) {
      progress.update(*unit * kSteps + static_cast<int64_t>(share * kSteps));
    });
    found().add({{"lines", lines_[place]}});
  }
  found().flush();
}

OrderedJson ChoiceRun::all_lines() const {
  OrderedJson all = OrderedJson::array();
  for (const OrderedJson& lines : lines_) {
    for (const OrderedJson& line : lines) all.push_back(line);
  }
  return all;
}

OrderedJson ChoiceRun::result_head(const std::string& format) const {
  OrderedJson json{{"format", format}};
  json.update(origin());
  if (part()) {
    json.update(part_json(part()->part, part()->places(), digests().of_calls));
    if (!chosen_.empty()) json["backend"] = options().at("backend");
  }
  add_left_out(json, common_.capture);
  return json;
}

void check_table_name(const std::string& out, const std::string& shard) {
  if (out.empty()) return;
  require_ending(out, {".csv", ".json"});
  if (std::filesystem::path(out).extension() != ".csv") return;
  refuse_shard(
      shard,
      "a .csv does not say which part it is: write a .json, of which attnscope merge makes "
      "a .csv");
}

}  // namespace attnscope
