#include <fmt/core.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/common/capture_check.h"
#include "cli/common/capture_options.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/run_backend.h"
#include "cli/common/run_plan.h"
#include "cli/common/run_steps.h"
#include "cli/diff/diff_exports.h"
#include "cli/diff/diff_pairs.h"
#include "cli/diff/diff_report.h"
#include "cli/diff/diff_tables.h"
#include "core/base/error.h"
#include "core/problem/sampled_rows.h"
#include "io/files/output_file.h"

namespace attnscope {
namespace {

/// What a run over the pairs would take: each pair by itself, one after the other.
RunPlan plan_of_pairs(const DiffPairs& pairs, const TileBackend& backend, MemoryBudget& budget,
                      int threads) {
  RunPlan plan;
  plan.command = "diff";
  plan.heads = static_cast<int64_t>(pairs.pairs.size());
  plan.budget_bytes = budget.limit();
  plan.rows = 0;
  for (const NamedPair& pair : pairs.pairs) {
    const DifferencePlan each = plan_difference(pair.heads, backend, budget.available(), threads);
    plan.flops += each.flops;
    plan.entries += static_cast<int64_t>(each.entries);
    plan.memory_bytes = std::max(plan.memory_bytes, each.bytes);
    plan.workers = std::max(plan.workers, each.workers);
    *plan.rows += pair.heads.a.num_rows();
  }
  return plan;
}

/// By some rows of the first pair, which are compared now.
double seconds_of(const DiffPairs& pairs, const RunPlan& whole, const TileBackend& backend,
                  MemoryBudget& budget, int threads) {
  constexpr int64_t kRows = 192;
  HeadPair pair = pairs.pairs.front().heads;
  const std::vector<int64_t> few = sampled_rows(pair.a.problem->num_queries(), kRows);
  pair.a.row_list = pair.b.row_list = few;
  const DifferencePlan plan = plan_difference(pair, backend, budget.available(), threads);
  const auto start = std::chrono::steady_clock::now();
  compare_heads(pair, plan, backend, budget);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  return plan.flops > 0 ? spent.count() * whole.flops / plan.flops : spent.count();
}

std::vector<DiffRow> compare_pairs(const DiffOptions& o, const DiffPairs& pairs,
                                   const RunPlan& whole, const TileBackend& backend,
                                   MemoryBudget& budget, const Console& console,
                                   const std::stop_token& stop) {
  constexpr double kTicks = 1000;
  const auto count = static_cast<double>(pairs.pairs.size());
  Progress progress(console, "diff", static_cast<int64_t>(count * kTicks),
                    static_cast<double>(whole.entries) / (count * kTicks), "entries");
  std::vector<DiffRow> rows;
  for (const NamedPair& pair : pairs.pairs) {
    const auto before = static_cast<double>(rows.size());
    const StreamControl control{stop,
                                [&](const StreamProgress& p) {
                                  const double part = static_cast<double>(p.tiles_done) /
                                                      static_cast<double>(p.tiles_total);
                                  progress.update(static_cast<int64_t>((before + part) * kTicks));
                                },
                                {}};
    const DifferencePlan plan =
        plan_difference(pair.heads, backend, budget.available(), o.run.threads);
    const auto compared = compare_heads(pair.heads, plan, backend, budget, control);
    if (!compared) throw interrupted_error(kNothingWritten);
    rows.push_back({pair.a, pair.b, summarise_rows(pair.heads, *compared, o.top)});
  }
  return rows;
}

/// A second capture, opened as the first, or none.
std::optional<Capture> open_second(const DiffOptions& o, const Console& console) {
  if (o.second.empty()) return std::nullopt;
  CaptureOptions second = o.capture;
  second.capture = o.second;
  second.tensors = {};
  return open_capture(second, o.run, console);
}

int run_diff(const DiffOptions& o) {
  const Console console(o.quiet);
  if (!o.out.empty()) check_diff_name(o.out);
  if (compares_tables(o)) return diff_tables(o, console);
  if (compares_exports(o)) return diff_exports(o, console);
  if (o.classes)
    throw usage_error("--classes lists changes of class in tables of numbers of heads");
  const Capture a = open_capture(o.capture, o.run, console);
  const std::optional<Capture> second = open_second(o, console);
  const Capture& b = second ? *second : a;
  const DiffPairs pairs = make_diff_pairs(a, o.selection, b, o.other, o.sample);
  const auto backend = make_run_backend(o.run, console);
  const int64_t memory = memory_beside(a, o.run) - (second ? counted_bytes(*second) : 0);
  check_capture(a, o.capture, *backend, memory, console);
  if (second) check_capture(*second, o.capture, *backend, memory, console);
  MemoryBudget budget(memory);
  RunPlan plan = plan_of_pairs(pairs, *backend, budget, o.run.threads);
  if (o.dry_run) {
    plan.seconds = seconds_of(pairs, plan, *backend, budget, o.run.threads);
    print_plan(plan, o.json);
    return kExitOk;
  }
  std::vector<std::filesystem::path> inputs = a.files();
  if (second) {
    const auto more = second->files();
    inputs.insert(inputs.end(), more.begin(), more.end());
  }
  if (!o.out.empty()) OutputFile::check_target(o.out, {.force = o.force, .inputs = inputs});
  console.say(fmt::format("diff of {} pairs of heads: {}FLOP, memory {} (limit {})",
                          pairs.pairs.size(), format_count(plan.flops),
                          format_bytes(plan.memory_bytes), format_bytes(plan.budget_bytes)));
  const std::vector<HeadTask> tasks = pairs.tasks();
  const CheckedRun run(console, tasks, *backend);
  run.check_logits(tasks, *backend, budget);
  const std::vector<DiffRow> rows =
      compare_pairs(o, pairs, plan, *backend, budget, console, run.stop());
  a.require_unchanged();
  if (second) second->require_unchanged();
  const nlohmann::ordered_json json =
      diff_json(a.path().filename().string(), b.path().filename().string(), rows);
  if (!o.out.empty()) {
    write_diff(json, o.out, o.force);
    console.say(fmt::format("wrote {} ({} pairs)", o.out, rows.size()));
  }
  print_result(
      o.json, !o.out.empty(), [&] { return json; }, [&] { print_diff_table(rows); });
  return kExitOk;
}

void add_other_options(CommandParser& command, OtherValues& o) {
  const std::string group = "Side B (else as A's, by name)";
  const auto add = [&](const char* name, std::string& value, const char* type, const char* text) {
    command.add_option(name, value, text).type_name(type).group(group);
  };
  add("--b-step", o.step, "N", "this step");
  add("--b-layer", o.layer, "N", "this layer");
  add("--b-head", o.head, "N", "this head");
  add("--b-batch", o.batch, "N", "this batch item");
  add("--b-chunk", o.chunk, "N", "this piece of a stream");
  add("--b-branch", o.branch, "NAME", "this guidance branch");
  add("--b-block", o.block, "NAME", "this block of the model");
  add("--b-slot", o.slot, "NAME", "this attention of a block");
}

}  // namespace

Command add_diff_command(CLI::App& app) {
  auto options = std::make_shared<DiffOptions>();
  DiffOptions& o = *options;
  CommandParser command(
      app, "diff",
      "heads, layers, steps, branches, captures, exports or tables of metrics against each other");
  add_capture_options(command, o.capture);
  command.add_option("SECOND", o.second,
                     "the capture, export or table that side B is of (default: the first)");
  command.add_option("-o", o.out, "write .json, .csv or .h5; without it a table is printed")
      .type_name("FILE");
  command.add_option("--sample", o.sample, "compare N evenly spread rows of each head")
      .in_range(1, int64_t{1} << 31)
      .type_name("N");
  command.add_option("--top", o.top, "how many of the rows that differ most are listed (default 5)")
      .in_range(0, 100000)
      .type_name("N");
  add_other_options(command, o.other);
  add_selection_options(command, o.selection);
  add_run_options(command, o.run);
  command.add_flag("--classes", o.classes,
                   "of tables: where heads change their class along the steps, and no numbers");
  command.add_flag("--force", o.force, "replace FILE if it exists");
  command.add_flag("--dry-run", o.dry_run, "print what it would take; compare nothing");
  command.add_flag("--json", o.json, "print JSON");
  command.add_flag("--quiet", o.quiet, "no narration, no progress");
  command.footer(
      "Examples:\n"
      "  attnscope diff dump/ --layers 3 --heads 1 --b-head 2\n"
      "  attnscope diff dump/ --steps 0 --b-step 40 --sample 256 -o drift.csv\n"
      "  attnscope diff base/ tuned/ --layers 10-20 --json\n"
      "  attnscope diff before.h5 after.h5 -o changes.csv          (tables of attnscope stats)\n"
      "  attnscope diff metrics.h5 --classes                       (a table of several runs)");
  return {command, [options] { return run_diff(*options); }};
}

}  // namespace attnscope
