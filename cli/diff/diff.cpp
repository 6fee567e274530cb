#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/common/capture_options.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/head_list.h"
#include "cli/common/left_out_names.h"
#include "cli/common/output_options.h"
#include "cli/common/pixel_query.h"
#include "cli/common/stored_input.h"
#include "cli/common/unknown_state.h"
#include "cli/diff/diff_maps.h"
#include "cli/diff/diff_numbers.h"
#include "cli/diff/diff_options.h"
#include "cli/diff/diff_report.h"
#include "cli/diff/diff_tables_report.h"
#include "cli/diff/diff_text.h"
#include "cli/run/capture_check.h"
#include "cli/run/head_where.h"
#include "cli/run/run_backend.h"
#include "cli/run/run_plan.h"
#include "cli/run/run_steps.h"
#include "cli/run/shard_option.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/base/number_order.h"
#include "core/products/pooled_map.h"
#include "io/export/format/export_manifest.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/metrics/read_table.h"

namespace attnscope {
namespace {

/// One side: an export, or a capture with the options of captures.
std::unique_ptr<DiffSide> open_side(const DiffOptions& o, const std::string& path, bool is_first,
                                    const Console& console) {
  if (is_export_file(path)) return make_diff_side(path);
  CaptureOptions capture = o.capture;
  capture.capture = path;
  if (!is_first) capture.tensors = {};
  return make_diff_side(open_capture(capture, o.run, console));
}

/// The room that --memory leaves beside the captures' lists of calls.
MemoryRoom memory_of(const DiffSide& a, const DiffSide* second, const RunOptions& run) {
  const Capture* const first = a.capture() != nullptr ? a.capture()
                               : second != nullptr    ? second->capture()
                                                      : nullptr;
  if (first == nullptr) return memory_limit(run);
  const bool both = a.capture() != nullptr && second != nullptr && second->capture() != nullptr;
  const MemoryRoom room = memory_beside(*first, run);
  const int64_t more = both ? counted_bytes(*second->capture()) : 0;
  return {std::max(room.bytes - more, int64_t{0}), room.taken + more};
}

/// Turns signals into a stop: `checked`, which has found captures' tensors good, or `reading`.
struct DiffWatch {
  std::optional<CheckedRun> checked;
  std::optional<InterruptWatch> reading;
  std::stop_token stop() const { return checked ? checked->stop() : reading->token(); }
};

int report_numbers(const DiffOptions& o, const DiffSides& sides, std::vector<DiffRow> rows,
                   const Console& console) {
  const NumberOrder order = NumberOrder::parse(o.sort, diff_numbers());
  sort_diff(order, rows);
  OrderedJson json =
      diff_json(sides.a.path().filename().string(), sides.b.path().filename().string(), rows);
  add_left_out(json, o.capture);
  if (!o.out.empty()) {
    write_diff(json, o.out, o.force);
    console.say(fmt::format("wrote {} ({} pairs)", o.out, rows.size()));
  }
  print_result(
      o.json, !o.out.empty(), [&] { return json; },
      [&] {
        if (o.csv) return fmt::print("{}", diff_csv(json));
        if (rows.size() == 1) return print_diff(rows.front());
        print_diff_table(rows, order.name, o.top.has_value());
      });
  return kExitOk;
}

std::vector<DiffRow> compare_numbers(const DiffOptions& o, const std::vector<ComparedPair>& pairs,
                                     const PairRunner& runner, const RunPlan& plan,
                                     const std::stop_token& stop) {
  std::vector<DiffRow> rows;
  runner.run(
      pairs, plan, make_number_sink,
      [&](size_t i, PairSink& sink) {
        for (DiffRow& row : found_numbers(pairs[i], sink, o.top.value_or(kListedRows)))
          rows.push_back(std::move(row));
      },
      stop);
  return rows;
}

void check_diff_options(const CommandParser& command, const DiffOptions& o) {
  const bool maps = !o.product.empty();
  if (o.classes && maps) throw usage_error("--classes and --product: take one of them");
  if (o.classes && !o.sort.empty()) {
    throw usage_error("--sort: changes of class stand by layer, head and step");
  }
  if (maps) {
    if (o.csv) {
      throw usage_error(fmt::format("-o -: --product {} is no table: write a file", o.product));
    }
    for (const char* const name : {"--top", "--sort", "--sample", "--segments"}) {
      if (command.count(name) == 0) continue;
      throw usage_error(fmt::format("{} does not apply to --product {}", name, o.product));
    }
    return;
  }
  for (const char* const name :
       {"--query", "--at", "--index", "--text-token", "--pool", "--colour-scale"}) {
    if (command.count(name) == 0) continue;
    throw usage_error(fmt::format("{} belongs to --product", name));
  }
  if (o.out.empty() && !o.csv) return;
  if (!o.csv) check_diff_name(o.out);
  if (!o.sort.empty() && o.out.ends_with(".h5") && !o.json) {
    throw usage_error("--sort: an .h5 has its pairs in the capture's order (-o X.json or X.csv)");
  }
  if (command.count("--top") > 0 && !o.json && !o.out.ends_with(".json")) {
    throw usage_error("--top: rows are listed in a .json, and not in " +
                      (o.csv ? "CSV" : one_line(o.out)));
  }
}

/// The sides that a run compares, the backend that computes them, and the memory for it.
struct DiffRun {
  std::unique_ptr<DiffSide> a, second;
  RunBackend backend;  ///< none: both are exports
  MemoryRoom memory{0};

  const DiffSide& b() const { return second ? *second : *a; }
  DiffSides sides() const { return {*a, b(), backend.get()}; }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> all = a->files();
    if (!second) return all;
    const auto more = second->files();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  void require_unchanged() const {
    if (a->capture() != nullptr) a->capture()->require_unchanged();
    if (second && second->capture() != nullptr) second->capture()->require_unchanged();
  }
};

DiffRun open_run(DiffOptions& o, const Console& console) {
  DiffRun run;
  run.a = open_side(o, o.capture.capture, true, console);
  if (!o.second.empty()) run.second = open_side(o, o.second, false, console);
  run.memory = memory_of(*run.a, run.second.get(), o.run);
  if (run.a->capture() != nullptr || run.b().capture() != nullptr) {
    run.backend = make_run_backend(o.run, console);
    for (const DiffSide* const side : {run.a.get(), run.second.get()}) {
      if (side == nullptr || side->capture() == nullptr) continue;
      check_capture(*side->capture(), o.capture, *run.backend, run.memory, console);
    }
    if (const Capture* const capture = run.a->capture()) {
      settle_where(o.selection, *capture, o.run, console, o.dry_run);
    }
    return run;
  }
  check_export_options(o.capture, o.run);
  if (o.dry_run) throw usage_error("--dry-run: nothing of an export is computed");
  return run;
}

/// Warns of what the selections name and captures lack, and of states that nobody recorded.
void tell_calls(const DiffOptions& o, const DiffRun& run, const Console& console) {
  std::vector<SelectedCall> calls;
  const auto add = [&](const DiffSide& side, const SelectionOptions& selection) {
    if (side.capture() == nullptr) return;
    std::vector<std::string> missing;
    const auto selected = side.capture()->select(parse_selection(selection), &missing);
    for (const std::string& line : missing) console.warn("warning: " + line);
    calls.insert(calls.end(), selected.begin(), selected.end());
  };
  add(*run.a, o.selection);
  // Which of its calls are compared, the pairs tell.
  if (run.second) add(*run.second, {});
  tell_unknown_state(calls, console);
}

/// Says what begins, and has the tensors of captures looked through.
void begin_watch(DiffWatch& watch, const DiffRun& run, const std::vector<ComparedPair>& pairs,
                 const RunPlan& plan, MemoryBudget& budget, const Console& console) {
  if (!run.backend) {
    watch.reading.emplace(console);
    return;
  }
  console.say(fmt::format("diff of {} pairs of heads: {}FLOP, memory {} (limit {})", pairs.size(),
                          format_count(plan.flops), format_bytes(plan.memory_bytes),
                          format_bytes(plan.budget_bytes)));
  const std::vector<HeadTask> tasks = tasks_of(pairs);
  watch.checked.emplace(console, tasks, *run.backend);
  watch.checked->check_logits(tasks, *run.backend, budget);
}

void check_table_options(const DiffOptions& o) {
  std::string given = capture_option_given(o.capture, o.run);
  if (o.sample > 0) throw usage_error("--sample: the numbers of a table are what they are");
  if (o.top) given = "--top";
  if (o.dry_run) given = "--dry-run";
  if (given.empty()) return;
  throw usage_error(
      fmt::format("{}: {} is a table of numbers, of which nothing is computed (the "
                  "option belongs to captures)",
                  given, one_line(o.capture.capture)));
}

std::vector<HeadName> selected_heads(const NumberTable& table, SelectionOptions selection,
                                     const Console& console) {
  settle_where_of_table(selection, table);
  const std::vector<HeadName> all = heads_of_table(table);
  std::vector<HeadName> selected;
  for (const size_t i : select_stored(all, selection, console)) selected.push_back(all[i]);
  return selected;
}

/// Side A's heads by themselves, or each with side B's.
TableReport report_of(const DiffOptions& o, const NumberTable& a, const NumberTable* b,
                      const Console& console) {
  const std::vector<HeadName> heads = selected_heads(a, o.selection, console);
  if (b == nullptr && !o.other.any()) return {a.name, "", summarise_table(a, heads)};
  if (o.classes) {
    throw usage_error("--classes: changes of class along the steps are those of one table");
  }
  const NumberTable& other = b != nullptr ? *b : a;
  const std::string where = b != nullptr ? o.second : o.capture.capture;
  const auto pairs =
      pair_heads(heads, OtherHeads(heads_of_table(other), where), o.other, b == nullptr);
  return {a.name, other.name, compare_tables(a, other, pairs)};
}

/// True of tables of numbers of heads (io/metrics/read_table.h). Throws where only one of two is.
bool compares_tables(const DiffOptions& o) {
  const bool first = is_number_table(o.capture.capture);
  const bool second = !o.second.empty() && is_number_table(o.second);
  if (first == second || o.second.empty()) return first;
  const std::string& other = first ? o.second : o.capture.capture;
  std::error_code error;
  if (!std::filesystem::exists(other, error)) {
    throw file_error(other, "", "there is no such file or folder");
  }
  throw usage_error(
      fmt::format("{}: is no table of metrics, and {} is one (attnscope stats makes tables)",
                  one_line(other), one_line(first ? o.capture.capture : o.second)));
}

/// One table over its runs, or two against each other. Gives the exit code.
int diff_tables(const DiffOptions& o, const Console& console) {
  check_table_options(o);
  const std::filesystem::path first = o.capture.capture, second = o.second;
  std::vector<std::filesystem::path> inputs{first};
  if (!o.second.empty()) inputs.push_back(second);
  if (!o.out.empty()) OutputFile::check_target(o.out, {.force = o.force, .inputs = inputs});
  MemoryBudget budget(memory_limit(o.run));
  MemoryReservation held_a, held_b;
  const NumberTable a = read_number_table(first, budget, held_a);
  std::optional<NumberTable> b;
  if (!o.second.empty()) b = read_number_table(second, budget, held_b);
  TableReport report = report_of(o, a, b ? &*b : nullptr, console);
  if (!report.found.left_out.empty()) {
    console.warn(fmt::format("only one of the tables has {}",
                             one_line(fmt::format("{}", fmt::join(report.found.left_out, ", ")))));
  }
  sort_tables(o.sort, report);
  if (!o.out.empty()) {
    write_tables(report, o.classes, o.out, o.force);
    console.say(fmt::format("wrote {} ({})", o.out, heads_text(std::ssize(report.found.heads))));
  }
  print_result(
      o.json, !o.out.empty(), [&] { return tables_json(report); },
      [&] {
        if (o.csv) return fmt::print("{}", tables_csv(report, o.classes));
        print_tables(report, o.classes);
      });
  return kExitOk;
}

/// The queries of both sides.
std::vector<PixelSequence> sequences_of(const std::vector<ComparedPair>& pairs,
                                        const CaptureOptions& capture) {
  std::vector<PixelSequence> sequences;
  for (const ComparedPair& pair : pairs) {
    for (const SideHead* const side : {&pair.a, &pair.b}) {
      sequences.push_back(side->call != nullptr ? pixel_sequence(*side->call, false, capture)
                                                : pixel_sequence(*side->facts, side->label));
    }
  }
  return sequences;
}

int run_diff(const CommandParser& command, DiffOptions o) {
  const Console console(o.quiet);
  refuse_tasks("", o.alone, o.out, kOneProcess);
  check_diff_options(command, o);
  refuse_list_as_output(o.selection.from, o.out);
  if (o.product.empty() && compares_tables(o)) {
    if (o.by_segment) throw usage_error("--segments: numbers of heads have no segments");
    return diff_tables(o, console);
  }
  if (o.classes)
    throw usage_error("--classes lists changes of class in tables of numbers of heads");
  NumberOrder::parse(o.sort, diff_numbers());
  const DiffRun run = open_run(o, console);
  const DiffSides sides = run.sides();
  auto pairs = compared_pairs(sides, o.selection, o.other, {o.sample, o.by_segment}, console);
  settle_pixels(sequences_of(pairs, o.capture), o.queries, console);
  const auto maps = o.product.empty() ? nullptr : std::make_unique<DiffMaps>(o, sides, pairs);
  tell_calls(o, run, console);
  MemoryBudget budget(run.memory);
  constexpr int64_t kResultBytes = 12 << 10;
  const MemoryReservation results = reserve_results(budget, std::ssize(pairs), kResultBytes);
  const PairRunner runner(sides, budget, o.run.threads, console);
  const MakePairSink make = maps ? maps->sink_maker() : MakePairSink(make_number_sink);
  const auto page = maps ? maps->page() : std::nullopt;
  MemoryReservation pixels;
  if (page) pixels = reserve_page(budget, *page);
  RunPlan plan = runner.plan(pairs, make);
  plan.memory_bytes += pixels.bytes();
  if (page) plan.picture = planned_picture(*page, style_of(o.page, o.out));
  if (!o.out.empty()) OutputFile::check_target(o.out, {.force = o.force, .inputs = run.files()});
  if (o.dry_run) {
    plan.seconds = runner.seconds(pairs, plan);
    print_plan(plan, o.json);
    return kExitOk;
  }
  DiffWatch watch;
  begin_watch(watch, run, pairs, plan, budget, console);
  if (maps) {
    maps->run(
        runner, plan, watch.stop(), [&] { run.require_unchanged(); }, console);
    return kExitOk;
  }
  auto rows = compare_numbers(o, pairs, runner, plan, watch.stop());
  run.require_unchanged();
  return report_numbers(o, sides, std::move(rows), console);
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

/// Adds --product and the options of the maps and pictures that it makes of the differences.
void add_map_options(CommandParser& command, DiffOptions& o) {
  const std::string group = "The difference as a map (--product)";
  command
      .add_option("--product", o.product,
                  "pooled[:N] (blocks of N x N, 64), frames (frame x frame) or volume (of a\n"
                  "query, or of the mean query of the video), into -o .h5, .png, .svg or .pdf;\n"
                  "volume also .npy, .gif, .mp4; frames without -o: printed")
      .words(map_product_words())
      .type_name("NAME")
      .group(group);
  add_query_options(command, o.queries, false);
  add_text_token_option(command, o.queries);
  command
      .add_option("--pool", o.pool,
                  "pooled as a picture: max (of the largest size, with its sign; default) or mean")
      .one_of(pool_names())
      .type_name("NAME")
      .group(group);
  command
      .add_option("--colour-scale", o.colour_scale,
                  "of pictures: symlog or linear (default of frames)")
      .one_of({"symlog", "linear"})
      .type_name("NAME")
      .group(group);
}

Command add_diff_command(CLI::App& app) {
  auto options = std::make_shared<DiffOptions>();
  DiffOptions& o = *options;
  CommandParser command(
      app, "diff",
      "heads, layers, steps, branches, captures, exports or tables of metrics against each other");
  add_capture_options_of_two(command, o.capture, o.second);
  command
      .add_option("SECOND", o.second,
                  "the capture, export or table that side B is of (default: the first)")
      .type_name("SECOND");
  command
      .add_option(
          "-o", o.out,
          "write .json, .csv or .h5 (of --product .h5 or a picture); else a line a pair is\n"
          "printed, of one pair all that is told; -: as CSV")
      .type_name("FILE");
  take_standard_output(command, o);
  command.add_option("--sample", o.sample, "compare N evenly spread rows of each head")
      .in_range(1, int64_t{1} << 31)
      .type_name("N");
  command
      .add_option("--sort", o.sort,
                  "pairs by this number (js_mean, max_abs, ...; of tables a metric), the largest\n"
                  "first; NAME:asc: the smallest")
      .words(diff_numbers())
      .type_name("NAME");
  command
      .add_option("--top", o.top,
                  "how many of the rows that differ most are listed (5); of several pairs below\n"
                  "each line")
      .in_range(0, 100000)
      .type_name("N");
  command.add_flag("--segments", o.by_segment,
                   "compare segment by segment also where the tokens are the same");
  add_map_options(command, o);
  add_picture_options(command, o.page);
  add_other_options(command, o.other);
  add_selection_options(command, o.selection);
  add_run_options(command, o.run);
  add_alone_option(command, o.alone);
  command.add_flag("--classes", o.classes,
                   "of tables: where heads change their class along the steps, and no numbers");
  add_output_options(command, o,
                     {.dry_run = "print what it would take; compare nothing",
                      .quiet = "no narration, no progress"});
  command.footer(
      "Examples:\n"
      "  attnscope diff dump/ --layers 3 --heads 1 --b-head 2\n"
      "  attnscope diff dump/ --steps 0 --b-step 40 --sample 256 -o drift.csv\n"
      "  attnscope diff base/ tuned/ --layers 10-20 --sort js_mean\n"
      "  attnscope diff base/ tuned/ --layers 12 --heads 3 --product pooled:64 -o change.png\n"
      "  attnscope diff base/ tuned/ --product frames -o frames.h5\n"
      "  attnscope diff base/ tuned/ --product volume --query 6,15,22 -o change.gif\n"
      "  attnscope diff maps.h5 dump/                              (what an export rounded)\n"
      "  attnscope diff before.h5 after.h5 -o changes.csv          (tables of attnscope stats)\n"
      "  attnscope diff metrics.h5 --classes                       (a table of several runs)");
  return {command, [command, options] {
            check_picture_options(command, options->out, options->product == "volume");
            return run_diff(command, *options);
          }};
}

}  // namespace attnscope
