#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/common/capture_check.h"
#include "cli/common/capture_options.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/forecast.h"
#include "cli/common/run_backend.h"
#include "cli/common/run_plan.h"
#include "cli/common/run_steps.h"
#include "cli/common/shard_option.h"
#include "cli/mask/mask_report.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/mask/mask_cover.h"
#include "core/patterns/mask_measurement.h"
#include "core/patterns/mask_timing.h"
#include "core/problem/signed_weights.h"
#include "core/stream/row_stream.h"
#include "io/capture/call/block_mask_file.h"
#include "io/capture/selection_share.h"
#include "io/export/format/export_part_json.h"
#include "io/files/output_file.h"
#include "io/masks/mask_choice.h"
#include "io/results/mask_files.h"

namespace attnscope {
namespace {

struct MaskOptions {
  CaptureOptions capture;
  SelectionOptions selection;
  RunOptions run;
  std::vector<std::string> masks;
  std::string out;
  std::string save;
  std::string shard;
  bool alone = false;
  int64_t block = 0;
  bool exact = false;
  bool time = false;
  bool dry_run = false;
  bool json = false;
  bool force = false;
  bool quiet = false;
};

/// What block-sparse kernels use most.
constexpr int64_t kDefaultBlock = 128;

/// The selected heads, or a share of them.
struct MaskTasks {
  std::vector<SelectedCall> selected;  ///< of the whole plan
  std::vector<SelectedCall> calls;
  std::vector<HeadTask> tasks;
  std::optional<SelectionShare> share;
};

/// What decides the scores beside the calls.
std::string plan_of_masks(const MaskOptions& o, const Capture& capture) {
  const nlohmann::ordered_json options{
      {"masks", o.masks}, {"block", o.block}, {"exact", o.exact}, {"time", o.time}};
  return plan_text("mask", options, capture.path().filename().string());
}

MaskTasks make_tasks(const MaskOptions& o, const Capture& capture,
                     const std::optional<PlanShare>& share) {
  MaskTasks m;
  m.selected = m.calls = capture.select(parse_selection(o.selection));
  if (share) {
    m.share = share_selection(m.selected, *share, ShareUnit::heads, plan_of_masks(o, capture));
    m.calls = m.share->of(m.selected);
  }
  for (const SelectedCall& selected : m.calls) {
    const AttentionProblem& problem = *selected.call->problem;
    require_one_sign(problem, "a share that a mask keeps");
    if (!is_normalised(problem.score())) {
      throw usage_error(
          "mask: rows of sigmoid scores do not sum to 1, so no share of them is kept");
    }
    for (int64_t b : selected.batch) {
      for (int64_t h : selected.heads) {
        m.tasks.push_back(
            {&problem, b, h, {0, problem.num_queries()}, {}, {0, problem.num_keys()}});
      }
    }
  }
  return m;
}

std::vector<MaskChoice> parse_masks(const MaskOptions& o, MemoryBudget& budget) {
  if (o.masks.empty()) {
    throw usage_error(
        "mask needs --mask: a pattern such as spatial:frames=1, a .npy with --block N, or a .json");
  }
  const std::optional<int64_t> block = o.block > 0 ? std::optional(o.block) : std::nullopt;
  std::vector<MaskChoice> masks;
  for (const std::string& text : o.masks) masks.push_back(MaskChoice::parse(text, block, budget));
  return masks;
}

void check_outputs(const MaskOptions& o, const Capture& capture, const MaskTasks& m) {
  std::vector<std::filesystem::path> inputs = capture.files();
  inputs.insert(inputs.end(), o.masks.begin(), o.masks.end());
  const OutputFileOptions options{.force = o.force, .inputs = inputs};
  if (!o.out.empty()) {
    const std::string extension = std::filesystem::path(o.out).extension().string();
    if (extension != ".csv" && extension != ".json") {
      throw usage_error("-o " + o.out + ": the table's name must end in .csv or .json");
    }
    if (extension == ".csv") {
      refuse_shard(o.shard,
                   "a .csv does not say which part it is: write a .json, of which attnscope "
                   "merge makes a .csv");
    }
    OutputFile::check_target(o.out, options);
  }
  if (o.save.empty()) return;
  refuse_shard(o.shard, "--save writes the blocks of all heads of a call at once");
  if (std::filesystem::path(o.save).extension() != ".npy") {
    throw usage_error("--save " + o.save + ": the name must end in .npy");
  }
  if (o.masks.size() != 1 || m.calls.size() != 1 || m.calls.front().batch.size() != 1) {
    throw usage_error(fmt::format(
        "--save {}: a file holds the heads of one call, one batch item and one mask (got {} calls, "
        "{} batch items, {} masks): select with --steps --layers --branch --batch",
        o.save, m.calls.size(), m.calls.front().batch.size(), o.masks.size()));
  }
  if (o.save == o.out) throw usage_error("--save and -o name the same file");
  OutputFile::check_target(o.save, options);
}

/// The blocks that the mask leaves anything of, head after head.
void save_blocks(BlockMaskWriter& writer, const HeadTask& task, const Mask& mask, int64_t block,
                 const std::stop_token& stop) {
  const int64_t rows = task.problem->num_queries();
  for (int64_t first = 0; first < rows; first += block) {
    if (stop.stop_requested()) throw interrupted_error(kNothingWritten);
    writer.append(kept_blocks(mask, task.batch, task.head, {first, std::min(first + block, rows)},
                              task.problem->num_keys(), block));
  }
}

/// Measures every mask on every head.
class MaskLab {
 public:
  MaskLab(const MaskOptions& options, const Capture& capture, const MaskTasks& tasks,
          const std::vector<MaskChoice>& masks, const TileBackend& backend, MemoryBudget& budget)
      : o_(options),
        capture_(capture),
        m_(tasks),
        choices_(masks),
        backend_(backend),
        budget_(budget) {}

  std::vector<MaskRow> run(const Console& console, int64_t entries) {
    const CheckedRun run(console, m_.tasks, backend_);
    std::optional<BlockMaskWriter> writer;
    if (!o_.save.empty()) {
      const AttentionProblem& problem = *m_.tasks.front().problem;
      writer.emplace(o_.save, o_.force, static_cast<int64_t>(m_.tasks.size()),
                     ceil_div(problem.num_queries(), block()),
                     ceil_div(problem.num_keys(), block()));
    }
    const auto heads = static_cast<int64_t>(m_.tasks.size());
    Progress progress(console, "mask", heads * kSteps,
                      static_cast<double>(entries) / static_cast<double>(heads * kSteps),
                      "entries");
    for (int64_t i = 0; i < heads; ++i) {
      add_head(static_cast<size_t>(i), run.stop(), writer, [&](double share) {
        progress.update(i * kSteps + static_cast<int64_t>(share * kSteps));
      });
    }
    capture_.require_unchanged();
    if (writer) writer->commit();
    return std::move(rows_);
  }

 private:
  static constexpr int64_t kSteps = 1000;
  int64_t block() const { return o_.block > 0 ? o_.block : kDefaultBlock; }

  void add_head(size_t i, const std::stop_token& stop, std::optional<BlockMaskWriter>& writer,
                const std::function<void(double)>& progress) {
    const HeadTask& task = m_.tasks[i];
    int64_t bytes = 0;
    for (const MaskChoice& choice : choices_) bytes += choice.bytes(*task.problem);
    const MemoryReservation reserved = budget_.reserve(bytes, "the masks of a head");
    std::vector<Mask> masks;
    for (const MaskChoice& choice : choices_) {
      masks.push_back(
          choice.build(*task.problem, task.batch, task.head, {backend_, budget_, stop}));
    }
    const auto qualities =
        measure_masks(task, masks, {backend_, budget_, stop, o_.exact}, progress);
    for (size_t m = 0; m < masks.size(); ++m) {
      MaskRow row{head_name(task.problem->id(), task.batch, task.head),
                  choices_[m].name(),
                  qualities[m],
                  {}};
      if (o_.time) row.time_ratio = mask_time_ratio(task, masks[m], block(), backend_, budget_);
      rows_.push_back(std::move(row));
    }
    if (writer) save_blocks(*writer, task, masks.front(), block(), stop);
  }

  const MaskOptions& o_;
  const Capture& capture_;
  const MaskTasks& m_;
  const std::vector<MaskChoice>& choices_;
  const TileBackend& backend_;
  MemoryBudget& budget_;
  std::vector<MaskRow> rows_;
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

/// The scores as JSON; of a part, which it is and what computed it.
nlohmann::ordered_json result_of(const std::vector<MaskRow>& rows, const MaskOptions& o,
                                 const MaskTasks& m, const TileBackend& backend) {
  nlohmann::ordered_json json = mask_json(rows, o.time);
  if (!m.share) return json;
  nlohmann::ordered_json part{{"format", json["format"]}};
  part.update(part_json(m.share->part));
  if (!m.calls.empty()) part["backend"] = recorded_backend(backend, m.selected);
  part["heads"] = std::move(json["heads"]);
  return part;
}

int run_mask(const MaskOptions& asked) {
  const Console console(asked.quiet);
  MaskOptions o = asked;
  refuse_tasks(o.shard, o.alone, o.out + o.save, kPartOfEach);
  const std::optional<PlanShare> share = chosen_share(o.shard, console);
  o.out = name_of_share(o.out, share);
  MemoryBudget budget(memory_limit(o.run));
  const std::vector<MaskChoice> masks = parse_masks(o, budget);
  const Capture capture = open_capture(o.capture, o.run, console);
  const MaskTasks m = make_tasks(o, capture, share);
  const auto backend = make_run_backend(o.run, console);
  check_capture(capture, o.capture, *backend, memory_beside(capture, o.run), console);
  const MemoryReservation held = budget.reserve(counted_bytes(capture), "the capture's calls");
  for (const SelectedCall& call : m.calls) {
    for (const MaskChoice& mask : masks) mask.check(*call.call->problem, {*backend, budget});
  }
  check_outputs(o, capture, m);
  if (o.dry_run) {
    print_plan(plan_of_run(o, m, *backend, budget), o.json);
    return kExitOk;
  }
  std::vector<MaskRow> rows;
  // Of a part without heads there is nothing to measure.
  if (!m.tasks.empty()) {
    const RowStream stream = plan_row_stream(m.tasks, *backend, budget);
    rows = MaskLab(o, capture, m, masks, *backend, budget).run(console, stream.plan.entries);
  }
  if (!o.save.empty()) console.say("wrote " + o.save);
  if (!o.out.empty()) {
    write_mask_file(result_of(rows, o, m, *backend), o.out, o.force);
    console.say(fmt::format("wrote {} ({} rows)", o.out, rows.size()));
  }
  print_result(
      o.json, !o.out.empty(), [&] { return result_of(rows, o, m, *backend); },
      [&] { print_mask_table(rows, o.time); });
  return kExitOk;
}

}  // namespace

Command add_mask_command(CLI::App& app) {
  auto options = std::make_shared<MaskOptions>();
  MaskOptions& o = *options;
  CommandParser command(app, "mask", "what sparse masks keep of every head");
  add_capture_options(command, o.capture, "--own-mask");
  command
      .add_option(
          "--mask", o.masks,
          "a mask to measure (repeatable): NAME[:key=value,...], a block mask FILE.npy\n"
          "(bool [query blocks, key blocks] or [heads, ...]) with --block, or a FILE.json\n"
          "that joins masks by \"and\" and \"or\". Names: none, causal, window:N,\n"
          "block_causal:N  spatial:frames=0  temporal:band=B  tiles:size=6x8x8,window=3x3x3\n"
          "radial:block=128,decay=1,sink=0  vertical-slash:vertical=64,slash=64,rows=64\n"
          "topk:block=128,keep=0.1 (or blocks=N)  topp:block=128,p=0.9\n"
          "All but the first four keep text rows and text keys (text=drop: only rows)")
      .one_value_each()
      .type_name("MASK");
  command.add_option("-o", o.out, "write the table as .csv or .json").type_name("FILE");
  command
      .add_option(
          "--save", o.save,
          "write the blocks that the mask keeps anything of, as bool [heads, query blocks,\n"
          "key blocks] (one call, one mask)")
      .type_name("FILE.npy");
  command
      .add_option(
          "--block", o.block,
          "tokens of a block in FILE.npy, --save and --time (128 for these two unless told)")
      .in_range(1, int64_t{1} << 30)
      .type_name("N");
  command.add_flag("--exact", o.exact,
                   "oracle and output errors on all rows instead of 256 spread ones");
  command.add_flag(
      "--time", o.time,
      "time a few row panels with the mask's empty blocks left out and without the mask:\n"
      "column time is their ratio");
  add_selection_options(command, o.selection);
  add_run_options(command, o.run);
  add_shard_option(command, o.shard);
  add_alone_option(command, o.alone);
  command.add_flag("--dry-run", o.dry_run, "print what it would take; compute no scores");
  command.add_flag("--force", o.force, "replace files that exist");
  command.add_flag("--json", o.json, "print the table as JSON");
  command.add_flag("--quiet", o.quiet, "no narration");
  command.footer(
      "Examples:\n"
      "  attnscope mask dump/ --mask spatial:frames=1 --mask temporal --layers 12\n"
      "  attnscope mask dump/ --mask tiles:size=6x8x8,window=3x3x3 --json\n"
      "  attnscope mask dump/ --mask blocks.npy --block 128 --exact\n"
      "  attnscope mask dump/ --mask topk:keep=0.2 --layers 3 --save kept.npy");
  return {command, [options] { return run_mask(*options); }};
}

}  // namespace attnscope
