#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/common/capture_options.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/interrupt.h"
#include "cli/common/output_options.h"
#include "cli/run/shard_option.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/reduce/head_fields.h"
#include "io/export/format/export_manifest.h"
#include "io/export/format/export_plan.h"
#include "io/export/write/export_resumption.h"
#include "io/export/write/make_export.h"
#include "io/export/write/pooled_export.h"
#include "io/files/file_ending.h"
#include "io/metrics/merge_metrics.h"
#include "io/plan_parts/link_maps.h"
#include "io/plan_parts/merge_blocks.h"
#include "io/plan_parts/merge_captures.h"
#include "io/plan_parts/merge_maps.h"
#include "io/plan_parts/merge_shards.h"
#include "io/plan_parts/merge_tables.h"
#include "io/plan_parts/merge_volumes.h"
#include "io/plan_parts/merged_export.h"
#include "io/plan_parts/part_volumes.h"
#include "io/results/volume_files.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

struct MergeOptions {
  std::vector<std::string> parts;
  std::string out, sort;
  bool csv = false;  ///< on standard output, instead of a file
  bool alone = false, copy = false, mixed = false, sync = true, resume = false, force = false,
       dry_run = false, json = false, quiet = false;
};

/// The size of the whole that was or, with --dry-run, would be written.
struct MergeSize {
  std::string what;  ///< "weights"
  int64_t parts = 0, groups = 0, bytes = 0;
};

void print_merge_json(const MergeOptions& o, const MergeSize& size, int64_t written) {
  print_json({{"format", "attnscope-merge/1"},
              {"written", !o.dry_run},
              {"product", size.what},
              {"parts", size.parts},
              {"calls", size.groups},
              {"payload_bytes", size.bytes},
              {"bytes_written", written}},
             true);
}

ExportWriteOptions write_options(const MergedExport& whole, const MergeOptions& o) {
  return {.force = o.force,
          .sync = o.sync,
          .resume = o.resume,
          .inputs = whole.paths(),
          .sources = whole.inputs};
}

/// Writes the whole as its product asks for.
MergeResult write_export(const MergedExport& whole, const MergeOptions& o,
                         const MergeControl& control) {
  const ExportWriteOptions write = write_options(whole, o);
  if (whole.spec.product == ExportProduct::pooled)
    return merge_blocks(whole, o.out, write, control);
  if (whole.spec.is_sharded()) return merge_shards(whole, o.out, o.copy, write, control);
  return o.copy ? merge_maps(whole, o.out, write, control) : link_maps(whole, o.out, write);
}

/// Throws where what --resume finds is of another whole.
void check_merge_resume(const MergedExport& whole, const MergeOptions& o) {
  const RunForm form = whole.spec.is_sharded()                                 ? RunForm::shards
                       : o.copy && whole.spec.product != ExportProduct::pooled ? RunForm::tiles
                                                                               : RunForm::nothing;
  check_resume(o.out, form, make_manifest(whole.spec, whole.layout, {}), write_options(whole, o));
}

int merge_export(const MergeOptions& o, const Console& console) {
  check_export_name(o.csv ? "-" : o.out);
  const MergedExport whole =
      open_merged_export(std::vector<fs::path>(o.parts.begin(), o.parts.end()), o.mixed);
  const bool shards = whole.spec.is_sharded();
  const bool pooled = whole.spec.product == ExportProduct::pooled;
  if (!o.copy && !shards && !pooled) check_linkable(whole, o.out);
  const MergeSize size{std::string(export_product_name(whole.spec.product)),
                       std::ssize(whole.parts), std::ssize(whole.layout.groups),
                       shards   ? shards_bytes(whole)
                       : pooled ? pooled_payload_bytes(ExportPlan(whole.spec, whole.layout))
                                : maps_bytes(whole)};
  const std::string text =
      fmt::format("{} of {} parts, {} {}", size.what, size.parts, format_bytes(size.bytes),
                  o.copy || pooled ? "copied" : "linked");
  check_export_target(o.out, write_options(whole, o), shards, o.copy || pooled ? size.bytes : 0);
  if (o.dry_run) {
    if (o.resume) check_merge_resume(whole, o);
    if (o.json) {
      print_merge_json(o, size, 0);
    } else {
      fmt::print("{}\n", text);
    }
    return kExitOk;
  }
  console.say(fmt::format("merge: {} to {}", text, o.out));
  const InterruptWatch interrupts(console);
  Progress progress(console, "merge", std::max<int64_t>(1, size.bytes), 1, "B");
  const MergeResult result = write_export(
      whole, o, {interrupts.token(), [&](int64_t done, int64_t) { progress.update(done); }});
  for (const std::string& warning : result.warnings) console.warn(warning);
  console.say(result.complete_already ? o.out + " is complete already"
                                      : fmt::format("wrote {}", o.out));
  for (const std::string& note : result.notes) console.say(note);
  if (o.json) print_merge_json(o, size, result.bytes_written);
  return kExitOk;
}

/// The kinds of output that parts can be of.
enum class PartKind : uint8_t { maps, stats, masks, edits, volumes, captures, metrics };

/// Of tables that have no .json.
void refuse_printed_json(const MergeOptions& o) {
  if (o.json && !o.dry_run) throw usage_error("-o - --json: this whole is printed as CSV alone");
}

PartKind kind_of(const std::string& part) {
  if (is_part_of_capture(part)) return PartKind::captures;
  if (holds_metrics(part)) return PartKind::metrics;
  if (is_table_json(part, "stats")) return PartKind::stats;
  if (is_table_json(part, "mask")) return PartKind::masks;
  if (is_table_json(part, "lab")) return PartKind::edits;
  if (is_volume_file(part)) return PartKind::volumes;
  if (is_export_file(part)) {
    return read_manifest(part).product == "stats" ? PartKind::stats : PartKind::maps;
  }
  std::error_code error;
  throw file_error(
      part, "",
      fs::exists(part, error)
          ? "is nothing that --shard writes (an export; stats as .json or .h5, mask and "
            "lab as .json, query as .h5; a folder of convert's), and no metrics of attnscope.probe"
          : "is not there");
}

/// Of all parts. Throws Error(file) where they are of several kinds.
PartKind common_kind(const std::vector<std::string>& parts) {
  const PartKind kind = kind_of(parts.front());
  for (const std::string& part : parts) {
    // The journal of a run that was cut off is called .part.
    if (kind_of(part) == kind &&
        (kind == PartKind::metrics ||
         fs::path(part).extension() == fs::path(parts.front()).extension())) {
      continue;
    }
    throw file_error(part, "", "is of another kind than " + one_line(parts.front()));
  }
  return kind;
}

void print_text(std::string_view text) { fmt::print("{}", text); }

/// The whole on standard output: as CSV or, with --json, as a .json has it.
void print_whole(const MergeOptions& o, PartKind kind, const std::vector<fs::path>& parts,
                 const TableMerge& how) {
  if (kind == PartKind::volumes) {
    refuse_printed_json(o);
    MemoryBudget budget(memory_limit({}));
    MemoryReservation held;
    const QueryVolumes whole = join_volumes(parts, how, budget, held);
    if (!o.dry_run) put_volumes_csv(whole, print_text);
    return;
  }
  const JoinedTable whole =
      kind == PartKind::stats ? join_stats(parts, how) : join_masks(parts, how);
  if (o.dry_run) return;
  o.json ? print_json(whole.json, true) : print_text(whole.csv);
}

int merge_tables(const MergeOptions& o, PartKind kind, const Console& console) {
  if (o.copy) throw usage_error("--copy is for maps: numbers are always copied");
  if (o.resume) throw usage_error("--resume is for maps: numbers are joined at once");
  if (!o.sort.empty() && kind != PartKind::stats) throw usage_error("--sort is for stats");
  if (!o.sync && kind == PartKind::volumes) {
    throw usage_error("--no-sync is for maps, stats, masks, edits and metrics");
  }
  if (!o.sort.empty() && o.out.ends_with(".h5")) {
    throw usage_error("--sort: an .h5 has its heads in the capture's order (-o X.json or X.csv)");
  }
  const std::vector<fs::path> parts(o.parts.begin(), o.parts.end());
  const TableMerge how{o.mixed, o.sort, o.dry_run};
  MergeResult result;
  const char* const what = kind == PartKind::masks     ? "mask"
                           : kind == PartKind::edits   ? "lab"
                           : kind == PartKind::volumes ? "query"
                                                       : "stats";
  if (o.csv) {
    print_whole(o, kind, parts, how);
  } else if (kind == PartKind::masks || kind == PartKind::edits) {
    result = merge_masks(parts, o.out, how, {.force = o.force, .sync = o.sync});
  } else if (kind == PartKind::volumes) {
    MemoryBudget budget(memory_limit({}));
    result = merge_volumes(parts, o.out, how, o.force, budget);
  } else {
    result = merge_stats(parts, o.out, how, {.force = o.force, .sync = o.sync});
  }
  for (const std::string& warning : result.warnings) console.warn(warning);
  if (o.dry_run && !o.json) fmt::print("{} of {} parts\n", what, parts.size());
  if (o.csv && !o.dry_run) return kExitOk;
  if (!o.dry_run) console.say("wrote " + o.out);
  if (o.json) print_merge_json(o, {what, std::ssize(parts), 0, 0}, result.bytes_written);
  return kExitOk;
}

int merge_folders(const MergeOptions& o, const Console& console) {
  check_capture_name(o.csv ? "-" : o.out);
  if (o.resume) throw usage_error("--resume is for maps: a folder is written anew");
  if (!o.sync) throw usage_error("--no-sync is for maps, stats, masks and metrics");
  const std::vector<fs::path> parts(o.parts.begin(), o.parts.end());
  const InterruptWatch interrupts(console);
  const MergeResult result = merge_captures(parts, o.out, o.copy, {o.mixed, "", o.dry_run}, o.force,
                                            {interrupts.token(), {}});
  if (o.dry_run && !o.json) fmt::print("capture of {} parts\n", parts.size());
  if (!o.dry_run) console.say("wrote " + o.out);
  if (o.json) print_merge_json(o, {"capture", std::ssize(parts), 0, 0}, result.bytes_written);
  return kExitOk;
}

int merge_runs(const MergeOptions& o, const Console& console) {
  if (o.copy) throw usage_error("--copy is for maps: numbers are always copied");
  if (o.resume) throw usage_error("--resume is for maps: numbers are joined at once");
  if (!o.sort.empty()) throw usage_error("--sort is for stats");
  const std::vector<fs::path> parts(o.parts.begin(), o.parts.end());
  MemoryBudget budget(memory_limit({}));
  if (o.csv) refuse_printed_json(o);
  const MetricJoin how{o.mixed, o.dry_run};
  const MetricMerge merged =
      o.csv ? join_metrics(parts, how, budget, print_text)
            : merge_metrics(parts, o.out, how, {.force = o.force, .sync = o.sync}, budget);
  for (const std::string& warning : merged.warnings) console.warn(warning);
  if (o.dry_run && !o.json) {
    fmt::print("metrics of {} runs, {} calls, of {} files\n", merged.runs, merged.groups,
               parts.size());
  }
  if (o.csv && !o.dry_run) return kExitOk;
  if (!o.dry_run) console.say(fmt::format("wrote {} ({} runs)", o.out, merged.runs));
  if (o.json) {
    print_merge_json(o, {"metrics", std::ssize(parts), merged.groups, 0}, merged.bytes_written);
  }
  return kExitOk;
}

int run_merge(const MergeOptions& o) {
  const Console console(o.quiet);
  refuse_tasks("", o.alone, o.out, kOneProcess);
  const PartKind kind = common_kind(o.parts);
  if (kind == PartKind::metrics) return merge_runs(o, console);
  if (kind != PartKind::maps && kind != PartKind::captures) return merge_tables(o, kind, console);
  if (!o.sort.empty()) throw usage_error("--sort is for stats");
  if (kind == PartKind::captures) return merge_folders(o, console);
  return merge_export(o, console);
}

}  // namespace

Command add_merge_command(CLI::App& app) {
  auto options = std::make_shared<MergeOptions>();
  MergeOptions& o = *options;
  CommandParser command(app, "merge",
                        "make the whole of the parts that runs with --shard wrote, or one table of "
                        "metrics of several runs");
  command.add_option("parts", o.parts, "the parts, all of them, in any order")
      .type_name("PART")
      .required();
  command.add_option("-o", o.out, "the whole; -: print it, of numbers, as CSV")
      .type_name("OUT")
      .required();
  take_standard_output(command, o);
  command.add_flag(
      "--copy", o.copy,
      "maps: one file that holds everything, the same to the byte as one run's; without\n"
      "it OUT links the parts, which must stand beside it and stay there");
  command
      .add_option("--sort", o.sort,
                  "stats: heads by this number, the largest first;\n"
                  "NAME:asc: the smallest")
      .words(metric_names())
      .type_name("NAME");
  command.add_flag("--mixed-backends", o.mixed,
                   "join parts that different backends computed, whose bits differ");
  command.add_flag("--sync,!--no-sync", o.sync, "as of export");
  add_alone_option(command, o.alone);
  command.add_flag("--resume", o.resume, "go on with what an interrupted merge left");
  add_output_options(command, o,
                     {.dry_run = "check the parts and print sizes; write nothing",
                      .force = "replace OUT once the new file is complete",
                      .json = "print what was written, or would be, as JSON",
                      .quiet = "no narration, no progress"});
  command.footer(
      "Exit code 1 names parts that are missing, there twice, or of another plan.\n"
      "Examples:\n"
      "  attnscope merge part-*.h5 -o maps.h5            # a master that links the parts\n"
      "  attnscope merge part-*.h5 -o maps.h5 --copy     # one file\n"
      "  attnscope merge heads-*.json -o heads.csv\n"
      "  attnscope merge metrics.rank-*.h5 -o metrics.h5   # of attnscope.probe");
  return {command, [options] { return run_merge(*options); }};
}

}  // namespace attnscope
