#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/cache_option.h"
#include "cli/capture_options.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/query_compute.h"
#include "cli/query_mean.h"
#include "cli/query_summary.h"
#include "cli/query_tasks.h"
#include "cli/row_collector.h"
#include "core/error.h"
#include "core/selection.h"
#include "io/export_file.h"
#include "io/film_files.h"
#include "io/volume_files.h"
#include "kernels/backend_factory.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;

using VolumeWriter = void (*)(const QueryVolumes&, const std::filesystem::path&, bool force);

/// The writer that the file's name asks for; checks what can be checked before the work.
VolumeWriter writer_for(const QueryRequest& o, const Capture& capture, const QueryTasks& q,
                        size_t count) {
  const TokenGrid& tokens = q.shown(0);
  const std::string extension = std::filesystem::path(o.out).extension().string();
  const std::vector<std::pair<std::string_view, VolumeWriter>> writers{{".npy", write_volumes_npy},
                                                                       {".h5", write_volumes_hdf5},
                                                                       {".csv", write_volumes_csv},
                                                                       {".png", write_volumes_png},
                                                                       {".gif", write_volumes_gif}};
  const auto found = std::find_if(writers.begin(), writers.end(),
                                  [&](const auto& entry) { return entry.first == extension; });
  if (found == writers.end()) {
    throw usage_error(
        fmt::format("-o {}: the name must end in .npy, .h5, .csv, .png or .gif (got \"{}\")", o.out,
                    extension));
  }
  const bool volume_needed = extension == ".npy" || extension == ".png" || extension == ".gif";
  const bool text = !tokens.text_range().empty();
  if (!tokens.has_grid() && (volume_needed || (extension == ".h5" && !text))) {
    throw usage_error(
        tokens.video_range().empty()
            ? fmt::format("-o {}: the {} are text and make no volume; write a .csv or .h5", o.out,
                          q.reverse ? "queries" : "keys")
            : fmt::format("-o {}: the {} have no token grid to make a volume of; give --grid "
                          "TxHxW, or write a .csv",
                          o.out, q.reverse ? "queries" : "keys"));
  }
  if (extension == ".png") {
    check_picture_size(o.out, {tokens.frames(), tokens.height(), tokens.width()},
                       static_cast<int64_t>(count));
  }
  if (extension == ".gif") check_animation_size(o.out, static_cast<int64_t>(count));
  ExportFile::check_target(o.out, {.force = o.force, .inputs = capture.files()});
  return found->second;
}

/// What --text-token asked for; null without it.
Json text_token_json(const QueryOptions& o) {
  return o.text_tokens.empty() ? Json() : Json(o.text_tokens);
}

/// "dog, domain video, weighting value, mean over heads"
std::string describe_output(const QueryVolumes& volumes) {
  std::string text = "domain " + volumes.domain;
  if (volumes.weighting != "none") text += ", weighting " + volumes.weighting;
  if (volumes.mean != "none") text += ", mean over " + volumes.mean;
  return text;
}

void print_summaries(const QueryRequest& o, const QueryVolumes& volumes, const Json& heads) {
  if (!o.json) {
    fmt::print("{}, {}\n", one_line(volumes.query_text), describe_output(volumes));
    return print_row_summaries(heads, volumes.reverse);
  }
  print_json({{"format", "attnscope-query/1"},
              {"query", volumes.query_text},
              {"text_token", text_token_json(o.queries)},
              {"reverse", volumes.reverse},
              {"domain", o.domain},
              {"weighting", volumes.weighting},
              {"mean", volumes.mean},
              {"heads", heads}},
             true);
}

int run_query(const QueryRequest& o) {
  const Console console(o.quiet);
  const SoftmaxDomain domain = parse_domain(o.domain);
  const MeanAxes mean = parse_mean_axes(o.mean);
  const Capture capture = open_capture(o.capture, console);
  const QueryTasks q = make_query_tasks(o, capture);
  check_domain(domain, q);
  check_weighting(o, q);
  QueryVolumes volumes = describe_volumes(o, capture, q);
  volumes.mean = mean.text();
  const VolumeWriter writer =
      o.out.empty() ? nullptr : writer_for(o, capture, q, count_averages(mean, volumes));
  const auto backend = make_backend(parse_backend(o.run.backend), {o.run.threads});
  MemoryBudget budget(memory_limit(o.run));
  if (!o.reverse && !o.cache.empty()) {
    console.say("note: only --reverse keeps row sums; --cache changes nothing here");
  }
  LseCache cache(cache_folders(o.cache, capture));
  const QueryRun run{o, q, *backend, budget, console};
  std::optional<QueryValues> computed = o.reverse ? compute_columns(run, cache) : compute_rows(run);
  if (!computed) return kExitOk;
  if (mean.any()) average_volumes(mean, volumes, computed->values, budget);
  Json heads = Json::array();
  for (size_t i = 0; i < volumes.volumes.size(); ++i) {
    QueryVolume& volume = volumes.volumes[i];
    std::vector<float>& values = computed->values[i];
    if (writer == nullptr || o.json) {
      const double lse = mean.any() ? std::nan("") : computed->lse[i];
      heads.push_back(summarise_values(volumes, volume, q.shown(0), values, lse, o.top));
      if (!o.queries.text_tokens.empty()) heads.back()["text_tokens"] = volume.chosen_text;
    }
    if (writer != nullptr) set_values(volume, q.shown(0), std::move(values));
  }
  if (writer != nullptr) {
    writer(volumes, o.out, o.force);
    console.say(fmt::format("wrote {} ({} {}{}, {})", o.out, volumes.volumes.size(),
                            mean.any() ? "volume" : "head", volumes.volumes.size() == 1 ? "" : "s",
                            describe_output(volumes)));
  }
  if (writer == nullptr || o.json) print_summaries(o, volumes, heads);
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
      "  attnscope query dump/ --text-token dog --reverse --mean heads -o dog.npy");
  return {command, [options] { return run_query(*options); }};
}

}  // namespace attnscope
