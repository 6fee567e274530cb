#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/capture_options.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/forecast.h"
#include "cli/interrupt.h"
#include "cli/query_summary.h"
#include "cli/query_tasks.h"
#include "cli/row_collector.h"
#include "core/error.h"
#include "core/streaming_engine.h"
#include "core/value_check.h"
#include "io/export_file.h"
#include "io/volume_files.h"
#include "kernels/backend_factory.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;

using VolumeWriter = void (*)(const QueryVolumes&, const std::filesystem::path&, bool force);

/// The writer that the file's name asks for; checks what can be checked before the work.
VolumeWriter writer_for(const QueryRequest& o, const Capture& capture, const QueryTasks& q) {
  const TokenGrid& keys = q.shown(0);
  const std::string extension = std::filesystem::path(o.out).extension().string();
  const std::vector<std::pair<std::string_view, VolumeWriter>> writers{{".npy", write_volumes_npy},
                                                                       {".h5", write_volumes_hdf5},
                                                                       {".csv", write_volumes_csv},
                                                                       {".png", write_volumes_png}};
  const auto found = std::find_if(writers.begin(), writers.end(),
                                  [&](const auto& entry) { return entry.first == extension; });
  if (found == writers.end()) {
    throw usage_error(fmt::format(
        "-o {}: the name must end in .npy, .h5, .csv or .png (got \"{}\")", o.out, extension));
  }
  const bool volume_needed = extension == ".npy" || extension == ".png";
  const bool text = !keys.text_range().empty();
  if (!keys.has_grid() && (volume_needed || (extension == ".h5" && !text))) {
    throw usage_error(
        keys.video_range().empty()
            ? fmt::format("-o {}: the keys are text and make no volume; write a .csv or .h5", o.out)
            : fmt::format("-o {}: the keys have no token grid to make a volume of; give --grid "
                          "TxHxW, or write a .csv",
                          o.out));
  }
  if (extension == ".png") {
    check_picture_size(o.out, {keys.frames(), keys.height(), keys.width()},
                       static_cast<int64_t>(q.tasks.size()));
  }
  ExportFile::check_target(o.out, {.force = o.force, .inputs = capture.files()});
  return found->second;
}

/// Bytes of the values that the output holds.
int64_t value_bytes(const QueryTasks& q) {
  int64_t bytes = 0;
  for (const HeadTask& task : q.tasks) bytes += task.problem->num_keys() * 4;
  return bytes;
}

void print_plan(const QueryRequest& o, const QueryTasks& q, const TilePlan& plan,
                const MemoryBudget& budget, double seconds) {
  const int64_t memory = plan.bytes_total + budget.used();
  if (o.json) {
    print_json({{"format", "attnscope-plan/1"},
                {"heads", q.tasks.size()},
                {"payload_bytes", value_bytes(q)},
                {"entries", plan.entries},
                {"flops", plan.flops},
                {"expected_seconds", seconds},
                {"memory_bytes", memory},
                {"budget_bytes", budget.limit()},
                {"workers", plan.workers}},
               false);
    return;
  }
  fmt::print("heads          {}\nvalues         {}\narithmetic     {}FLOP\n", q.tasks.size(),
             format_bytes(value_bytes(q)), format_count(plan.flops));
  fmt::print("expected time  {}\nmemory         {} of {}\nplan           {}\n",
             format_seconds(seconds), format_bytes(memory), format_bytes(budget.limit()),
             plan.describe());
}

/// Computes the rows; throws Error(interrupted) when it was stopped.
void collect_rows(const QueryTasks& q, const TilePlan& plan, const TileBackend& backend,
                  MemoryBudget& budget, RowCollector& rows, const Console& console) {
  const InterruptWatch interrupts;
  check_values(q.tasks, interrupts.token());
  Progress progress(console, "query", plan.tiles,
                    static_cast<double>(plan.entries) / static_cast<double>(plan.tiles), "entries");
  StreamControl control;
  control.stop = interrupts.token();
  control.progress = [&](const StreamProgress& p) { progress.update(p.tiles_done); };
  StreamingEngine engine(backend, budget);
  if (!engine.run(q.tasks, plan, rows, control)) {
    throw Error(ErrorCode::interrupted, "interrupted: nothing was written");
  }
}

/// What --text-token asked for; null without it.
Json text_token_json(const QueryOptions& o) {
  return o.text_tokens.empty() ? Json() : Json(o.text_tokens);
}

int run_query(const QueryRequest& o) {
  const Console console(o.quiet);
  const SoftmaxDomain domain = parse_domain(o.domain);
  const Capture capture = open_capture(o.capture, console);
  const QueryTasks q = make_query_tasks(o, capture);
  check_domain(domain, q);
  QueryVolumes volumes = describe_volumes(o, capture, q);
  const VolumeWriter writer = o.out.empty() ? nullptr : writer_for(o, capture, q);
  const auto backend = make_backend(parse_backend(o.run.backend), {o.run.threads});
  MemoryBudget budget(memory_limit(o.run));
  const int workers = o.run.threads > 0 ? o.run.threads : backend->workers();
  RowCollector rows(q.tasks, domain, workers, budget);
  const TilePlan plan =
      plan_tiles(q.tasks, rows.request(), *backend, budget.available(), o.run.threads);
  if (o.dry_run) {
    print_plan(o, q, plan, budget,
               expected_seconds(q.tasks, rows.request(), plan, *backend, budget));
    return kExitOk;
  }
  collect_rows(q, plan, *backend, budget, rows, console);
  Json heads = Json::array();
  for (size_t i = 0; i < q.tasks.size(); ++i) {
    const auto task = static_cast<int64_t>(i);
    QueryVolume& volume = volumes.volumes[i];
    std::vector<float> row = rows.take_mean(task);
    if (writer == nullptr || o.json) {
      heads.push_back(
          summarise_row(volume, q.tasks[i], row, rows.lse(task), volumes.tokens_of(volume), o.top));
      if (!o.queries.text_tokens.empty()) heads.back()["text_tokens"] = q.tokens_of(i).text;
    }
    if (writer != nullptr) set_values(volume, q.shown(i), std::move(row));
  }
  if (writer != nullptr) {
    writer(volumes, o.out, o.force);
    console.say(fmt::format("wrote {} ({} head{}, domain {})", o.out, volumes.volumes.size(),
                            volumes.volumes.size() == 1 ? "" : "s", o.domain));
    if (!o.json) return kExitOk;
  }
  if (o.json) {
    print_json({{"format", "attnscope-query/1"},
                {"query", volumes.query_text},
                {"text_token", text_token_json(o.queries)},
                {"domain", o.domain},
                {"heads", heads}},
               true);
  } else {
    fmt::print("{}, domain {}\n", volumes.query_text, o.domain);
    print_row_summaries(heads);
  }
  return kExitOk;
}

}  // namespace

Command add_query_command(CLI::App& app) {
  auto options = std::make_shared<QueryRequest>();
  QueryRequest& o = *options;
  CLI::App* command =
      app.add_subcommand("query", "one token's attention over the video, as a T x H x W volume");
  add_capture_options(*command, o.capture);
  command
      ->add_option("-o", o.out,
                   "write .npy [n,T,H,W], .h5, .csv or a .png filmstrip; without it, a summary is\n"
                   "printed")
      ->type_name("FILE");
  add_query_options(*command, o.queries, false);
  add_text_token_option(*command, o.queries);
  command
      ->add_option(
          "--domain", o.domain,
          "over which keys each row is renormalised: all (as it is), video, text, or frame\n"
          "(within each frame); keys outside the domain are 0")
      ->type_name("NAME");
  command->add_option("--top", o.top, "how many of the largest keys the summary lists")
      ->check(CLI::Range(0, 1000))
      ->type_name("N");
  add_selection_options(*command, o.selection);
  add_run_options(*command, o.run);
  command->add_flag("--dry-run", o.dry_run, "print what it would take; compute nothing");
  command->add_flag("--force", o.force, "replace FILE if it exists");
  command->add_flag("--json", o.json, "print the summary as JSON");
  command->add_flag("--quiet", o.quiet, "no narration");
  command->footer(
      "Examples:\n"
      "  attnscope query dump/ --query 3,8,7 --layers 2\n"
      "  attnscope query dump/ --query 3,8,7 --layers 2 --heads 0 -o film.png\n"
      "  attnscope query dump/ --query 3,6:10,5:9 --domain video -o volume.npy\n"
      "  attnscope query dump/ --text-token dog --layers 2 -o dog.png");
  return {command, [options] { return run_query(*options); }};
}

}  // namespace attnscope
