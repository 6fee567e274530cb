#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/common/cache_option.h"
#include "cli/common/capture_check.h"
#include "cli/common/capture_options.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/run_backend.h"
#include "cli/query/query_compute.h"
#include "cli/query/query_evictions.h"
#include "cli/query/query_export.h"
#include "cli/query/query_output.h"
#include "cli/query/query_segments.h"
#include "cli/query/query_summary.h"
#include "cli/query/query_tasks.h"
#include "core/base/error.h"
#include "core/base/selection.h"
#include "core/products/query_mean.h"
#include "core/products/row_collector.h"
#include "io/export/format/export_manifest.h"
#include "io/results/volume_output.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;

int query_capture(const QueryRequest& o, const Capture& capture, const Console& console) {
  const SoftmaxDomain domain = parse_domain(o.domain);
  const MeanAxes mean = parse_mean_axes(o.mean);
  const QueryTasks q = make_query_tasks(o, capture);
  check_domain(domain, q);
  check_weighting(o, q);
  QueryVolumes volumes = describe_volumes(o, capture, q);
  volumes.mean = mean.text();
  const auto format =
      choose_format(o, {q.shown(0), q.reverse, capture.files()}, count_averages(mean, volumes));
  const auto backend = make_run_backend(o.run, console);
  const int64_t memory = memory_beside(capture, o.run);
  check_capture(capture, o.capture, *backend, memory, console);
  MemoryBudget budget(memory);
  if (!o.reverse && !o.cache.empty()) {
    console.say("note: only --reverse keeps row sums; --cache changes nothing here");
  }
  LseCache cache(cache_folders(o.cache, capture), capture.inputs());
  const QueryRun run{o, q, *backend, budget, console};
  std::optional<QueryValues> computed = o.reverse ? compute_columns(run, cache) : compute_rows(run);
  if (!computed) return kExitOk;
  capture.require_unchanged();
  if (mean.any()) average_volumes(mean, volumes, computed->values, budget);
  Json heads = Json::array();
  for (size_t i = 0; i < volumes.volumes.size(); ++i) {
    QueryVolume& volume = volumes.volumes[i];
    std::vector<float>& values = computed->values[i];
    if (!format || o.json) {
      const double lse = mean.any() ? std::nan("") : computed->lse[i];
      heads.push_back(summarise_values(volumes, volume, q.shown(0), values, lse, o.top));
      if (!o.queries.text_tokens.empty()) heads.back()["text_tokens"] = volume.chosen_text;
    }
    if (format) set_values(volume, q.shown(0), std::move(values));
  }
  if (format) {
    mark_evicted(q, mean.any(), volumes);
    write_volumes(*format, volumes, o.out, o.force);
    console.say(fmt::format("wrote {} ({} {}{}, {})", o.out, volumes.volumes.size(),
                            mean.any() ? "volume" : "head", volumes.volumes.size() == 1 ? "" : "s",
                            describe_output(volumes)));
  }
  print_summaries(o, volumes, heads);
  return kExitOk;
}

int run_query(const QueryRequest& o) {
  const Console console(o.quiet);
  parse_domain(o.domain);
  parse_mean_axes(o.mean);
  if (is_export_file(o.capture.capture)) return query_export(o, console);
  const Capture capture = open_capture(o.capture, o.run, console);
  if (!asks_all_segments(o, capture)) return query_capture(o, capture, console);
  for (const QueryRequest& each : each_segment(o, capture)) query_capture(each, capture, console);
  return kExitOk;
}

}  // namespace

Command add_query_command(CLI::App& app) {
  auto options = std::make_shared<QueryRequest>();
  QueryRequest& o = *options;
  CommandParser command(app, "query",
                        "one token's attention over the video, as a T x H x W volume");
  add_capture_options(command, o.capture);
  command
      .add_option(
          "-o", o.out,
          "write .npy [n,T,H,W], .h5, .csv, a .png filmstrip or a .gif that plays it; without it,\n"
          "a summary is printed")
      .type_name("FILE");
  add_query_options(command, o.queries, false);
  add_text_token_option(command, o.queries);
  command
      .add_option(
          "--domain", o.domain,
          "over which keys each row is renormalised: all (as it is), video, text, or frame\n"
          "(within each frame); keys outside the domain are 0")
      .type_name("NAME");
  command
      .add_option(
          "--segment", o.segment,
          "show this segment of a capture's token map instead of its video; all: each that\n"
          "has a grid, in a file of its own (film.png: film-NAME.png)")
      .type_name("NAME");
  command.add_flag("--reverse", o.reverse,
                   "who attends to the chosen tokens: they are keys, the volume is of queries");
  command
      .add_option("--weighting", o.weighting,
                  "none, or value: weights times the L2 norm of the key's value row")
      .type_name("NAME");
  command
      .add_option("--mean", o.mean,
                  "average the volumes over heads, layers, steps, or all three (all); batch\n"
                  "items stay apart (repeatable)")
      .type_name("AXES")
      .delimiter(',')
      .one_value_each();
  command.add_option("--top", o.top, "how many of the largest keys the summary lists")
      .in_range(0, 1000)
      .type_name("N");
  add_selection_options(command, o.selection);
  add_run_options(command, o.run);
  add_cache_option(command, o.cache);
  command.add_flag("--dry-run", o.dry_run, "print what it would take; compute nothing");
  command.add_flag("--force", o.force, "replace FILE if it exists");
  command.add_flag("--json", o.json, "print the summary as JSON");
  command.add_flag("--quiet", o.quiet, "no narration");
  command.footer(
      "Examples:\n"
      "  attnscope query dump/ --query 3,8,7 --layers 2\n"
      "  attnscope query dump/ --query 3,8,7 --layers 2 --heads 0 -o film.png\n"
      "  attnscope query dump/ --query 3,6:10,5:9 --domain video -o volume.npy\n"
      "  attnscope query dump/ --text-token dog --layers 2 -o dog.png\n"
      "  attnscope query dump/ --text-token dog --reverse --mean heads -o dog.npy\n"
      "  attnscope query rows.h5 --query 3,8,7          # an export of weights or rows");
  return {command, [options] { return run_query(*options); }};
}

}  // namespace attnscope
