#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/left_out_names.h"
#include "cli/mask/mask_options.h"
#include "cli/mask/mask_report.h"
#include "cli/mask/saved_blocks.h"
#include "cli/run/forecast.h"
#include "cli/run/recorded_run.h"
#include "cli/run/run_backend.h"
#include "cli/run/run_plan.h"
#include "cli/run/run_steps.h"
#include "cli/run/shard_option.h"
#include "core/base/budget_error.h"
#include "core/base/error.h"
#include "core/patterns/mask_measurement.h"
#include "core/patterns/mask_timing.h"
#include "core/problem/signed_weights.h"
#include "core/stream/row_stream.h"
#include "io/capture/capture_guard.h"
#include "io/capture/selection_share.h"
#include "io/export/format/export_part_json.h"
#include "io/files/checksum.h"
#include "io/files/file_ending.h"
#include "io/files/file_text.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/masks/mask_choice.h"
#include "io/results/head_tables.h"
#include "io/results/output_provenance.h"

namespace attnscope {
namespace {

/// The block size, in tokens, that most block-sparse kernels use.
constexpr int64_t kDefaultMaskBlock = 128;

/// The selected heads, or a share of them.
struct MaskTasks {
  std::vector<SelectedCall> selected;  ///< of the whole plan
  std::vector<SelectedCall> calls;
  std::vector<HeadTask> tasks;

  /// The heads that are selected of a task's call, in the whole plan.
  std::span<const int64_t> selected_heads(const HeadTask& task) const {
    const auto of = std::find_if(selected.begin(), selected.end(), [&](const SelectedCall& call) {
      return call.call->problem.get() == task.problem &&
             std::find(call.batch.begin(), call.batch.end(), task.batch) != call.batch.end();
    });
    return of->heads;
  }
};

/// The options that decide the scores beside the selected calls.
OrderedJson mask_options(const MaskOptions& o) {
  return {{"masks", o.masks}, {"block", o.block}, {"exact", o.exact}, {"time", o.time}};
}

void check_calls(const std::vector<SelectedCall>& calls) {
  for (const SelectedCall& selected : calls) {
    const AttentionProblem& problem = *selected.call->problem;
    require_one_sign(problem, "a share that a mask keeps");
    if (is_normalised(problem.score())) continue;
    throw usage_error("mask: rows of sigmoid scores do not sum to 1, so no share of them is kept");
  }
}

std::vector<HeadTask> make_tasks(const std::vector<SelectedCall>& calls) {
  std::vector<HeadTask> tasks;
  for (const SelectedCall& selected : calls) {
    const AttentionProblem& problem = *selected.call->problem;
    for (int64_t b : selected.batch) {
      for (int64_t h : selected.heads) {
        tasks.push_back({&problem, b, h, {0, problem.num_queries()}, {}, {0, problem.num_keys()}});
      }
    }
  }
  return tasks;
}

std::vector<MaskChoice> parse_masks(const MaskOptions& o, MemoryBudget& budget) {
  BlockSize block;
  if (o.block > 0) block.told = o.block;
  std::vector<MaskChoice> masks;
  for (const std::string& text : o.masks) masks.push_back(MaskChoice::parse(text, block, budget));
  return masks;
}

/// Trees say what their files' blocks are.
void check_block_use(const MaskOptions& o, const std::vector<MaskChoice>& masks) {
  const bool any_file = std::any_of(masks.begin(), masks.end(), [](const MaskChoice& mask) {
    return std::filesystem::path(mask.name()).extension() == ".npy";
  });
  if (o.block == 0 || any_file || !o.save.empty() || o.time) return;
  throw usage_error(fmt::format(
      "--block {}: is of --mask FILE.npy, --save and --time (a pattern's own: topk:block={})",
      o.block, o.block));
}

void check_masks_fit(const std::vector<MaskChoice>& masks,
                     const std::vector<SelectedCall>& selected, const MaskResources& resources) {
  for (const SelectedCall& call : selected) {
    for (const MaskChoice& mask : masks) mask.check(*call.call->problem, call.heads, resources);
  }
}

std::vector<std::filesystem::path> inputs_of(const MaskOptions& o, const Capture& capture) {
  std::vector<std::filesystem::path> inputs = guarded_inputs(capture);
  for (const std::string& mask : o.masks) {
    inputs.emplace_back(mask);
    inputs.push_back(block_facts_path(mask));
  }
  return inputs;
}

/// Throws Error(usage) where the names of the outputs cannot be meant.
void check_output_names(const MaskOptions& o) {
  if (!o.out.empty()) {
    require_ending(o.out, {".csv", ".json"});
    if (std::filesystem::path(o.out).extension() == ".csv") {
      refuse_shard(o.shard,
                   "a .csv does not say which part it is: write a .json, of which attnscope "
                   "merge makes a .csv");
    }
  }
  if (o.save.empty()) return;
  refuse_shard(o.shard, "--save writes the blocks of all heads of a call at once");
  if (o.resume) throw usage_error("--resume: --save writes the blocks of all heads in one run");
  require_ending(o.save, {".npy"}, "--save");
  if (o.out == o.save || o.out == block_facts_path(o.save)) {
    throw usage_error(fmt::format("--save and -o name the same file ({} is what {} holds)",
                                  block_facts_path(o.save).string(), o.save));
  }
}

/// Throws Error(usage) where --save has no place for what is measured.
void check_saved_calls(const MaskOptions& o, const std::vector<SelectedCall>& calls) {
  if (o.save.empty()) return;
  if (o.masks.size() == 1 && calls.size() == 1 && calls.front().batch.size() == 1) return;
  throw usage_error(fmt::format(
      "--save {}: a file holds the heads of one call, one batch item and one mask (got {} calls, "
      "{} batch items, {} masks): select with --steps --layers --branch --batch",
      o.save, calls.size(), calls.front().batch.size(), o.masks.size()));
}

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

/// Measures every mask on heads, one at a time.
class MaskLab {
 public:
  MaskLab(const MaskOptions& options, const MaskTasks& tasks, const std::vector<MaskChoice>& masks,
          const TileBackend& backend, MemoryBudget& budget)
      : o_(options), m_(tasks), choices_(masks), backend_(backend), budget_(budget) {}

  /// Throws BudgetError where a head does not fit what is left.
  void require_memory() const {
    int64_t most = 0;
    const AttentionProblem* looked_at = nullptr;
    for (const HeadTask& task : m_.tasks) {
      if (task.problem == looked_at) continue;
      looked_at = task.problem;
      const MaskMeasurement how{backend_, budget_, stop_, o_.exact};
      int64_t bytes =
          least_measurement_bytes(task, choices_.size() + (o_.save.empty() ? 0 : 1), how);
      for (const MaskChoice& choice : choices_) {
        bytes = std::max(bytes, choice.least_build_bytes(*task.problem, backend_));
      }
      most = std::max(most, kept_bytes(task) + bytes);
    }
    const MemoryRoom room = budget_.room();
    if (most > room.bytes) throw BudgetError(room, most);
  }

  /// Before the first head: creates what --save names.
  void begin(std::stop_token stop) {
    stop_ = std::move(stop);
    if (o_.save.empty()) return;
    saved_.emplace(o_.save, o_.force, m_.tasks.front(), std::ssize(m_.tasks), saved_block());
  }

  /// A line a mask.
  std::vector<MaskRow> measure(size_t i, const std::function<void(double)>& progress) {
    const HeadTask& task = m_.tasks[i];
    const MemoryReservation reserved = budget_.reserve(kept_bytes(task), "the masks of a head");
    const SelectedHead head{task.batch, task.head, m_.selected_heads(task)};
    std::vector<Mask> masks;
    for (const MaskChoice& choice : choices_) {
      masks.push_back(choice.build(*task.problem, head, {backend_, budget_, stop_}));
    }
    // The blocks in the file are measured beside the mask that was asked for.
    if (saved_) masks.push_back(saved_->add(task, masks.front(), stop_));
    const auto qualities =
        measure_masks(task, masks, {backend_, budget_, stop_, o_.exact}, progress);
    std::vector<MaskRow> rows;
    for (size_t m = 0; m < choices_.size(); ++m) {
      MaskRow row{.name = head_name(task.problem->id(), task.batch, task.head),
                  .mask = choices_[m].name(),
                  .quality = qualities[m]};
      if (o_.time && !choices_[m].reorders()) {
        const int64_t block = o_.block > 0 ? o_.block : kDefaultMaskBlock;
        row.time_ratio = mask_time_ratio(task, masks[m], block, backend_, budget_);
      }
      if (saved_) {
        row.saved = SavedQuality{saved_->block(), qualities.back()};
        saved_heads_.push_back({row.name, row.saved->quality.density, row.saved->quality.recall});
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

  /// All heads were measured.
  void end(const Capture& capture) {
    if (!saved_) return;
    saved_->commit(capture, m_.calls.front(), choices_.front().name(), std::move(saved_heads_),
                   stop_);
  }

 private:
  int64_t saved_block() const {
    return o_.block > 0 ? o_.block : choices_.front().own_block().value_or(kDefaultMaskBlock);
  }

  /// Of a head's masks, while they live.
  int64_t kept_bytes(const HeadTask& task) const {
    int64_t bytes = o_.save.empty() ? 0 : SavedBlocks::bytes(task, saved_block());
    for (const MaskChoice& choice : choices_) bytes += choice.bytes(*task.problem);
    return bytes;
  }

  const MaskOptions& o_;
  const MaskTasks& m_;
  const std::vector<MaskChoice>& choices_;
  const TileBackend& backend_;
  MemoryBudget& budget_;
  std::stop_token stop_;
  std::optional<SavedBlocks> saved_;
  std::vector<SavedHead> saved_heads_;
};

RunPlan plan_of_run(const MaskOptions& o, const MaskTasks& m, const TileBackend& backend,
                    MemoryBudget& budget) {
  RunPlan plan{.command = "mask"};
  if (!m.tasks.empty()) {
    const RowStream stream = plan_row_stream(m.tasks, backend, budget);
    plan = forecast_run("mask", m.tasks, stream.request, stream.plan, backend, budget, true);
  }
  plan.masks = static_cast<int64_t>(o.masks.size());
  plan.seconds_note = " for the weights; masks come on top";
  return plan;
}

class MaskRun final : public RecordedRun {
 public:
  MaskRun(MaskOptions& options, Team& team, const Console& console)
      : RecordedRun("mask", options, team, console), o_(options) {}

 private:
  void check_options() override;
  std::vector<SelectedCall> choose() override;
  void check_plan() override { check_masks_fit(masks_, calls(), {backend(), budget()}); }
  OrderedJson result_options() const override;
  OrderedJson plan_options() const override { return mask_options(o_); }
  void keep_share(const SelectionShare& share) override;
  std::vector<HeadTask> tasks() const override { return m_.tasks; }
  int64_t record_bytes() const override { return std::ssize(masks_) * (6 << 10); }
  RunPlan forecast() override { return plan_of_run(o_, m_, backend(), budget()); }
  void check_memory() override {
    lab_.emplace(o_, m_, masks_, backend(), budget()).require_memory();
  }
  void check_output(const OutputFileOptions& file) override;
  void check(const CheckedRun& scope, std::span<const HeadTask> own) override;
  /// A part says which it is, also where it is only printed.
  bool has_origin() const override { return !o_.out.empty() || (o_.json && part()); }
  bool reads_values() const override { return true; }
  std::vector<std::filesystem::path> inputs() const override { return inputs_of(o_, capture()); }
  std::optional<int64_t> take(const OrderedJson& json) override;
  void measure(const std::stop_token& stop) override;
  void end_measuring() override { lab_->end(capture()); }
  void before_writing() override;
  void write_file(const std::filesystem::path& path) override;
  std::string written_text() const override { return fmt::format("{} rows", all_rows().size()); }
  OrderedJson result() const override;
  void print_table() const override {
    if (o_.csv) {
      fmt::print("{}", mask_csv(result().at("heads")));
    } else {
      print_mask_table(all_rows(), o_.time);
    }
  }
  std::vector<MaskRow> all_rows() const;

  const MaskOptions& o_;
  std::vector<MaskChoice> masks_;
  MaskTasks m_;
  std::vector<std::vector<MaskRow>> rows_;  ///< of each task
  std::optional<MaskLab> lab_;
};

void MaskRun::check_options() {
  if (o_.masks.empty()) {
    throw usage_error(
        "mask needs --mask: a pattern such as spatial:frames=1, a .npy with --block N, or a .json");
  }
  if (!team_.is_alone() && !o_.save.empty()) {
    throw usage_error("--save " + o_.save +
                      ": writes the blocks of all heads in their order, which is one process's "
                      "work (--alone: each has files of its own)");
  }
  check_output_names(o_);
}

std::vector<SelectedCall> MaskRun::choose() {
  masks_ = parse_masks(o_, budget());
  check_block_use(o_, masks_);
  m_.selected = m_.calls = select();
  check_calls(m_.calls);
  check_saved_calls(o_, m_.calls);
  m_.tasks = make_tasks(m_.calls);
  rows_.resize(m_.tasks.size());
  return m_.calls;
}

OrderedJson MaskRun::result_options() const {
  OrderedJson options = mask_options(o_);
  options.update(selection_json(o_.selection));
  options["score"] = score_text(calls());
  add_left_out(options, o_.capture);
  options["backend"] = recorded_backend(backend(), calls());
  OrderedJson& files = options["files"] = OrderedJson::object();
  for (const std::string& mask : o_.masks) add_file_digests(mask, files);
  return options;
}

void MaskRun::keep_share(const SelectionShare& share) {
  m_.calls = share.of(m_.selected);
  m_.tasks = make_tasks(m_.calls);
  rows_.resize(m_.tasks.size());
}

void MaskRun::check_output(const OutputFileOptions& file) {
  if (!o_.out.empty()) OutputFile::check_target(o_.out, file);
  if (!o_.save.empty()) BlockMaskWriter::check_target(o_.save, o_.force, inputs());
}

/// Tells of blocks that were saved of other heads, and of times that nobody takes; nothing else has
/// to be checked of a mask.
void MaskRun::check(const CheckedRun& scope, std::span<const HeadTask>) {
  if (!team_.is_first()) return;
  for (const MaskChoice& mask : masks_) {
    if (!o_.time || !mask.reorders()) continue;
    console_.say("note: --time: " + one_line(mask.name()) +
                 " has no time: a kernel of it takes the tokens in another order");
  }
  for (const std::string& note : other_head_notes(masks_, calls(), capture(), scope.stop())) {
    console_.say("note: " + note);
  }
}

/// The lines of a head that another run or process found.
std::optional<int64_t> MaskRun::take(const OrderedJson& json) {
  try {
    std::vector<MaskRow> rows;
    for (const OrderedJson& line : json.at("lines")) rows.push_back(parse_mask_row(line));
    if (rows.empty() || rows.size() != o_.masks.size()) return std::nullopt;
    const std::optional<int64_t> place = place_of(rows.front().name);
    if (place) rows_[static_cast<size_t>(*place)] = std::move(rows);
    return place;
  } catch (const OrderedJson::exception&) {
    return std::nullopt;
  }
}

/// The heads that are left, or this process's of them.
void MaskRun::measure(const std::stop_token& stop) {
  lab_->begin(stop);
  const int64_t entries = plan_row_stream(m_.tasks, backend(), budget()).plan.entries;
  constexpr int64_t kSteps = 1000;
  std::vector<int64_t> left;
  for (int64_t place = 0; place < std::ssize(m_.tasks); ++place) {
    if (!std::binary_search(found().there().begin(), found().there().end(), place)) {
      left.push_back(place);
    }
  }
  const int64_t all = std::ssize(left);
  if (all == 0) return;
  Progress progress(console_, "mask", all * kSteps,
                    static_cast<double>(entries) / static_cast<double>(all * kSteps), "entries");
  team_.begin_units(all);
  while (const std::optional<int64_t> unit = team_.next_unit()) {
    const auto place = static_cast<size_t>(left[static_cast<size_t>(*unit)]);
    rows_[place] = lab_->measure(place, [&](double share) {
      progress.update(*unit * kSteps + static_cast<int64_t>(share * kSteps));
    });
    OrderedJson lines = OrderedJson::array();
    for (const MaskRow& row : rows_[place]) lines.push_back(mask_row_json(row, o_.time));
    found().add({{"lines", std::move(lines)}});
  }
  found().flush();
}

std::vector<MaskRow> MaskRun::all_rows() const {
  std::vector<MaskRow> rows;
  for (const auto& of_head : rows_) rows.insert(rows.end(), of_head.begin(), of_head.end());
  return rows;
}

void MaskRun::before_writing() {
  if (o_.save.empty()) return;
  console_.say(saved_text(o_.save, all_rows()));
  if (masks_.front().has_terms()) {
    console_.say("note: the file's blocks are measured without the terms that stand for what " +
                 one_line(masks_.front().name()) + " drops");
  }
  if (masks_.front().reorders()) {
    console_.say(
        "note: the file has blocks of tokens as they stand in the sequence, not those of " +
        one_line(masks_.front().name()));
  }
}

/// The scores as JSON; of an output, its origin as well, and of a part, which it is.
OrderedJson MaskRun::result() const {
  const OrderedJson scores = mask_json(all_rows(), o_.time);
  OrderedJson json{{"format", scores["format"]}};
  json.update(origin());
  if (part()) {
    json.update(part_json(part()->part, part()->places(), digests().of_calls));
    if (!m_.calls.empty()) json["backend"] = options().at("backend");
  }
  add_left_out(json, o_.capture);
  json["heads"] = scores["heads"];
  return json;
}

void MaskRun::write_file(const std::filesystem::path& path) {
  write_mask_table(result(), std::filesystem::path(o_.out).extension().string(), path);
}

}  // namespace

Command add_mask_command(CLI::App& app) {
  auto options = std::make_shared<MaskOptions>();
  MaskOptions& o = *options;
  CommandParser command(app, "mask", "what sparse masks keep of every head");
  add_mask_options(command, o);
  command.footer(
      "Examples:\n"
      "  attnscope mask dump/ --mask spatial:frames=1 --mask temporal --layers 12\n"
      "  attnscope mask dump/ --mask tiles:size=6x8x8,window=3x3x3 --json\n"
      "  attnscope mask dump/ --mask blocks.npy --block 128 --exact\n"
      "  attnscope mask dump/ --mask topk:keep=0.2 --steps 10 --layers 3 --save kept.npy");
  return {command, [options] { return run_heads<MaskRun>(*options, options->save); }};
}

}  // namespace attnscope
