#include <fmt/core.h>

#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/common/capture_check.h"
#include "cli/common/capture_options.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/forecast.h"
#include "cli/common/interrupt.h"
#include "cli/common/query_options.h"
#include "cli/common/run_backend.h"
#include "cli/common/run_plan.h"
#include "cli/common/stream_run.h"
#include "cli/export/export_pooled.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/stream/logit_check.h"
#include "core/stream/tile_plan.h"
#include "core/stream/value_check.h"
#include "io/export/write/make_export.h"
#include "io/files/output_file.h"
#include "io/files/posix_file.h"

namespace attnscope {
namespace {

/// Side of pooled blocks unless --block says otherwise.
constexpr int64_t kDefaultBlock = 64;

struct ExportOptions {
  CaptureOptions capture;
  SelectionOptions selection;
  QueryOptions queries;
  RunOptions run;
  std::string out;
  std::string product;
  std::string dtype;
  std::string rows;
  std::string cols;
  std::string compress = "none";
  int64_t topk = 0;
  double threshold = 0;
  int64_t block = 0;
  bool pyramid = false;
  bool sync = true;
  bool force = false;
  bool resume = false;
  bool verify_all = false;
  bool dry_run = false;
  bool json = false;
  bool quiet = false;
};

ExportProduct parse_product(const ExportOptions& o) {
  if (o.product.empty()) {
    return o.topk > 0        ? ExportProduct::topk
           : o.threshold > 0 ? ExportProduct::threshold
           : o.block > 0     ? ExportProduct::pooled
           : o.queries.any() ? ExportProduct::rows
                             : ExportProduct::weights;
  }
  std::vector<std::string> names;
  for (const ExportProduct product : exported_maps()) {
    names.emplace_back(export_product_name(product));
    if (names.back() == o.product) return product;
  }
  const std::string nearest = nearest_word(o.product, names);
  throw usage_error(
      fmt::format("--product {}: no such product{} (weights, logits, lse, rows, topk, threshold, "
                  "pooled, output)",
                  o.product, nearest.empty() ? "" : ", did you mean " + nearest + "?"));
}

Encoding parse_encoding(ExportProduct product, const std::string& dtype) {
  const bool weights = product == ExportProduct::weights || product == ExportProduct::rows;
  if (dtype.empty()) return weights ? Encoding::f16_scaled : Encoding::f32;
  if (dtype == "f32") return Encoding::f32;
  if (dtype == "f16" && weights) return Encoding::f16_scaled;
  if (dtype == "f16" && product == ExportProduct::logits) return Encoding::f16;
  if (dtype == "u8" && weights) return Encoding::u8_log2;
  const std::string_view valid = weights                            ? "f16, f32 or u8"
                                 : product == ExportProduct::logits ? "f32 or f16"
                                                                    : "f32";
  const std::string_view what =
      product == ExportProduct::output ? "outputs" : export_product_name(product);
  throw usage_error(fmt::format("--dtype {}: {} are stored as {}", dtype, what, valid));
}

void check_output_fits(const ExportOptions& o, const AttentionProblem& problem) {
  if (!problem.v()) {
    throw usage_error(problem.name() +
                      ": --product output needs v, which is not there (expected a capture with "
                      "values, or --v FILE[:KEY] beside --q and --k)");
  }
  if (!o.cols.empty()) {
    throw usage_error("--cols does not apply to --product output: an output is over all keys");
  }
}

void check_products_fit(const ExportOptions& o, ExportProduct product,
                        const AttentionProblem& problem) {
  const ScoreFunction score = problem.score();
  if (product == ExportProduct::output) check_output_fits(o, problem);
  if (product == ExportProduct::rows && !o.queries.any()) {
    throw usage_error("--product rows needs --queries LIST, --query T,Y,X or --index N");
  }
  if (product != ExportProduct::rows && o.queries.any()) {
    throw usage_error(
        fmt::format("--query, --index and --queries choose rows: they need --product "
                    "rows (got {})",
                    export_product_name(product)));
  }
  if (product == ExportProduct::rows && !o.rows.empty()) {
    throw usage_error("--rows crops a range of rows; with --product rows give --queries instead");
  }
  if ((product == ExportProduct::topk) != (o.topk > 0)) {
    throw usage_error(o.topk > 0 ? fmt::format("--topk {}: belongs to --product topk (got {})",
                                               o.topk, export_product_name(product))
                                 : std::string("--product topk needs --topk N"));
  }
  if ((product == ExportProduct::threshold) != (o.threshold > 0)) {
    throw usage_error(o.threshold > 0
                          ? fmt::format("--threshold {}: belongs to --product threshold (got {})",
                                        o.threshold, export_product_name(product))
                          : std::string("--product threshold needs --threshold X"));
  }
  const bool pooled = product == ExportProduct::pooled;
  if (!pooled && (o.block > 0 || o.pyramid)) {
    throw usage_error(fmt::format("{} belongs to --product pooled (got {})",
                                  o.pyramid ? "--pyramid" : "--block",
                                  export_product_name(product)));
  }
  if (pooled && o.verify_all) {
    throw usage_error("--verify-all: nothing of an interrupted pooled export is kept");
  }
  const bool maps = product == ExportProduct::weights || product == ExportProduct::logits ||
                    product == ExportProduct::rows;
  if (o.compress != "none" && !maps) {
    throw usage_error(fmt::format("--compress {}: {} are not compressed", o.compress,
                                  export_product_name(product)));
  }
  if (product == ExportProduct::lse && !o.cols.empty()) {
    throw usage_error("--cols does not apply to --product lse: an LSE is over all keys");
  }
  if (product == ExportProduct::lse && !is_normalised(score)) {
    throw usage_error("--product lse: sigmoid scores have no LSE");
  }
  if (product == ExportProduct::logits && is_linear(score)) {
    throw usage_error("--product logits: linear scores have no logits");
  }
}

/// Only what decides the content, so that equal files have equal options. Files are not named:
/// what they hold goes into the capture's hash.
nlohmann::ordered_json content_options(const ExportOptions& o, ExportProduct product,
                                       Encoding encoding, const std::string& backend) {
  nlohmann::ordered_json json;
  json["product"] = export_product_name(product);
  json["dtype"] = encoding == Encoding::f32 ? "f32" : encoding == Encoding::u8_log2 ? "u8" : "f16";
  json["steps"] = o.selection.steps;
  json["layers"] = o.selection.layers;
  json["heads"] = o.selection.heads;
  json["batch"] = o.selection.batch;
  json["branch"] = o.selection.branches;
  json["kind"] = o.selection.kinds;
  if (!o.rows.empty()) json["rows"] = o.rows;
  if (!o.cols.empty()) json["cols"] = o.cols;
  if (product == ExportProduct::rows) {
    json["query"] = o.queries.coords;
    json["index"] = o.queries.indices;
    json["queries"] = o.queries.list;
  }
  if (product == ExportProduct::topk) json["topk"] = o.topk;
  if (product == ExportProduct::threshold) json["threshold"] = o.threshold;
  if (product == ExportProduct::pooled) {
    json["block"] = o.block > 0 ? o.block : kDefaultBlock;
    json["pyramid"] = o.pyramid;
  }
  if (o.compress != "none") json["compress"] = o.compress;
  json["score"] = o.capture.score;
  const std::string& mask = o.capture.mask;
  const bool word = mask == "none" || mask == "causal" || mask.rfind("window:", 0) == 0;
  const std::pair<const char*, std::string> facts[] = {
      {"scale", o.capture.scale},   {"mask", mask.empty() || word ? mask : "tensor"},
      {"layout", o.capture.layout}, {"grid", o.capture.grid},
      {"text", o.capture.text},     {"preset", o.capture.preset},
      {"rope", o.capture.rope}};
  for (const auto& [name, value] : facts) {
    if (!value.empty()) json[name] = value;
  }
  json["backend"] = backend;
  return json;
}

ExportSpec make_spec(const ExportOptions& o, const Capture& capture, const TileBackend& backend) {
  ExportSpec spec;
  spec.product = parse_product(o);
  spec.encoding = parse_encoding(spec.product, o.dtype);
  for (const SelectedCall& selected : capture.select(parse_selection(o.selection))) {
    const AttentionProblem& problem = *selected.call->problem;
    check_products_fit(o, spec.product, problem);
    ExportCall call;
    call.selected = selected;
    call.keys = parse_crop(o.cols.empty() ? ":" : o.cols, "--cols", problem.num_keys());
    if (spec.product == ExportProduct::rows) {
      call.row_list = resolve_queries(o.queries, problem);
    } else {
      call.rows = parse_crop(o.rows.empty() ? ":" : o.rows, "--rows", problem.num_queries());
    }
    spec.calls.push_back(std::move(call));
  }
  spec.capture_name = capture.path().filename().string();
  spec.backend = recorded_backend(backend, spec.selection());
  spec.options_json = content_options(o, spec.product, spec.encoding, spec.backend)
                          .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  spec.gzip = o.compress == "gzip";
  if (spec.product == ExportProduct::topk) spec.detail = KeepLargest{o.topk};
  if (spec.product == ExportProduct::threshold) spec.detail = KeepAbove{o.threshold};
  if (spec.product == ExportProduct::pooled) {
    spec.detail = PoolBlocks{o.block > 0 ? o.block : kDefaultBlock, o.pyramid};
  }
  return spec;
}

/// What is about to happen, in one line.
void say_start(const Console& console, const ExportOptions& o, const ExportSpec& spec,
               const RunPlan& f, const TileBackend& backend) {
  const std::string time =
      f.seconds < 0 ? "" : fmt::format(", about {} of computation", format_seconds(f.seconds));
  console.say(fmt::format("{} of {} head{}: {}{} to {}{}{}; {}; {}",
                          export_product_name(spec.product), f.heads, f.heads == 1 ? "" : "s",
                          f.at_most ? "at most " : "", format_bytes(*f.file_bytes), o.out,
                          free_text(f), time, backend.description(), f.how));
  std::set<std::string> unknown;
  for (const ExportCall& call : spec.calls) {
    const CallEntry& entry = *call.selected.call;
    unknown.insert(entry.unknown_keys.begin(), entry.unknown_keys.end());
  }
  for (const std::string& key : unknown) console.say("note: not understood: " + key);
}

void print_result(const ExportOptions& o, const ExportSink& sink, double seconds) {
  if (!o.json) return;
  print_json({{"format", "attnscope-export-result/1"},
              {"out", o.out},
              {"heads", sink.tasks().size()},
              {"tiles", sink.tiles_total()},
              {"tiles_kept", sink.resume().tiles_kept},
              {"bytes_written", sink.bytes_written()},
              {"seconds", seconds}},
             false);
}

void say_resume(const Console& console, const ExportResume& resume, const ExportSink& sink) {
  if (!resume.resumed) return;
  console.say(fmt::format("resuming {}: {} of {} tiles are there ({} read back)",
                          sink.partial_path().string(), resume.tiles_kept, sink.tiles_total(),
                          format_bytes(resume.bytes_checked)));
  if (resume.tiles_dropped > 0) {
    console.warn(fmt::format("{}: {} tiles were not as its journal says and are computed again",
                             sink.partial_path().string(), resume.tiles_dropped));
  }
}

/// What an export that did not end leaves: for whoever decides what to do next.
std::string leftover_text(const ExportSink& sink) {
  return fmt::format("{} of {} tiles are in {}; --resume goes on", sink.tiles_done(),
                     sink.tiles_total(), sink.partial_path().string());
}

/// Whether the same comes of every run: what is wrong is the values, not how they are worked on.
bool is_of_values(const std::exception& error) {
  const auto* const known = dynamic_cast<const Error*>(&error);
  return known != nullptr && known->code() == ErrorCode::value;
}

/// Streams the maps; throws Error(interrupted) when it was stopped. Whatever stops it, what is
/// complete by then is committed.
void stream_export(const Console& console, const TilePlan& plan, const TileBackend& backend,
                   MemoryBudget& budget, ExportSink& sink, std::stop_token stop) {
  bool complete = false;
  try {
    const auto there = [&](int64_t task, IndexRange rows, IndexRange cols) {
      return sink.has_tile(task, rows, cols);
    };
    complete = run_tiles({console, "export", backend, budget, stop}, sink.tasks(), plan, sink,
                         sink.resume().resumed ? SkipTile(there) : SkipTile());
    if (!complete) sink.suspend();
  } catch (const std::exception& error) {
    if (sink.tiles_done() > 0 && !is_of_values(error)) console.warn(leftover_text(sink));
    throw;
  }
  if (complete) return;
  throw Error(ErrorCode::interrupted,
              "interrupted: " +
                  (sink.tiles_done() > 0 ? leftover_text(sink) : std::string("nothing was kept")));
}

int run_export(const ExportOptions& o) {
  const Console console(o.quiet);
  if (o.verify_all && !o.resume) throw usage_error("--verify-all belongs to --resume");
  const Capture capture = open_capture(o.capture, console);
  const auto backend = make_run_backend(o.run, console);
  check_capture(capture, o.capture, *backend, memory_limit(o.run), console);
  ExportPlan plan = make_spec(o, capture, *backend);
  const ExportSpec& spec = plan.spec;
  if (spec.product == ExportProduct::pooled) {
    return export_pooled(
        std::move(plan),
        {o.run,
         *backend,
         capture,
         console,
         o.out,
         {.force = o.force, .sync = o.sync, .resume = o.resume, .inputs = capture.files()},
         o.dry_run,
         o.json});
  }
  MemoryBudget budget(memory_limit(o.run));
  const TilePlan tiles =
      plan_tiles(plan.tasks, plan.request(), *backend, budget.limit(), o.run.threads);
  const ExportSize size = estimate_export(plan);
  RunPlan forecast = plan_of("export", static_cast<int64_t>(plan.tasks.size()), tiles, budget);
  forecast.payload_bytes = size.payload_bytes;
  forecast.file_bytes = size.file_bytes;
  forecast.at_most = size.at_most;
  forecast.free_bytes = free_disk_bytes(o.out);
  forecast.seconds_note = " of computation";
  if (wants_estimate(o.dry_run, tiles.flops)) {
    forecast.seconds = expected_seconds(plan.tasks, plan.request(), tiles, *backend, budget);
  }
  if (o.dry_run) {
    print_plan(forecast, o.json);
    return kExitOk;
  }
  const ExportWriteOptions write_options{.force = o.force,
                                         .sync = o.sync,
                                         .resume = o.resume,
                                         .verify_all = o.verify_all,
                                         .inputs = capture.files()};
  check_export_target(o.out, write_options);
  say_start(console, o, spec, forecast, *backend);

  const InterruptWatch interrupts(console);
  const bool with_values = spec.product == ExportProduct::output;
  check_values(plan.tasks, interrupts.token(), with_values);
  if (spec.product != ExportProduct::logits) {
    check_logits(plan.tasks, *backend, budget, interrupts.token());
  }
  plan.spec.capture_hash = capture.content_hash(spec.selection(), with_values, interrupts.token());
  auto owned = make_export(std::move(plan), o.out, write_options);
  ExportSink& sink = *owned;
  if (sink.resume().complete) {
    console.say(o.out + " is complete already");
    print_result(o, sink, 0);
    return kExitOk;
  }
  for (const std::string& warning : sink.warnings()) console.warn(warning);
  say_resume(console, sink.resume(), sink);
  const auto start = std::chrono::steady_clock::now();
  try {
    stream_export(console, tiles, *backend, budget, sink, interrupts.token());
  } catch (const Error& error) {
    if (!is_of_values(error)) throw;
    owned.reset();
    // Gives up what was written: a partial file would wait for a run that gets past this.
    const OutputFile given_up(o.out, {.force = true});
    throw Error(error.code(), error.what() + std::string("; nothing was kept"));
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  print_result(o, sink, spent.count());
  console.say(fmt::format("wrote {} ({} in {}, {}B/s)", o.out, format_bytes(sink.bytes_written()),
                          format_seconds(spent.count()),
                          format_count(static_cast<double>(sink.bytes_written()) / spent.count())));
  return kExitOk;
}

}  // namespace

Command add_export_command(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  ExportOptions& o = *options;
  CommandParser command(app, "export", "stream attention maps to an HDF5 file");
  add_capture_options(command, o.capture);
  command.add_option("-o", o.out, "the HDF5 file to write").type_name("OUT.h5").required();
  command
      .add_option(
          "--product", o.product,
          "weights (default), logits, lse, rows (the default with --query), topk (with\n"
          "--topk), threshold (with --threshold), pooled (with --block) or output: softmax(QK).V\n"
          "itself, for captures with v")
      .type_name("NAME");
  command
      .add_option("--dtype", o.dtype,
                  "f16 (weights x 2^14, the default), f32, or u8 (log code); logits: f32 or f16")
      .type_name("TYPE");
  command.add_option("--rows", o.rows, "crop of the query rows, half-open: 0:256").type_name("A:B");
  command.add_option("--cols", o.cols, "crop of the key columns, half-open: 226:").type_name("A:B");
  command
      .add_option("--compress", o.compress,
                  "none, or gzip: a compressed file a call in OUT.d/, and OUT that links them")
      .one_of({"none", "gzip"})
      .type_name("NAME");
  command.add_option("--topk", o.topk, "the N largest weights of every row and their keys")
      .in_range(1, int64_t{1} << 20)
      .type_name("N");
  command
      .add_option("--threshold", o.threshold, "the weights from X on, as CSR (rows, keys, weights)")
      .check([](const std::string& text) {
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool number = error == std::errc() && end == text.data() + text.size();
        return number && value > 0 && value <= 1 ? "" : "expected a weight above 0 and up to 1";
      })
      .type_name("X");
  command
      .add_option("--block", o.block,
                  "the largest and the mean weight of blocks of N x N (--product pooled; 64)")
      .in_range(1, int64_t{1} << 30)
      .type_name("N");
  command.add_flag("--pyramid", o.pyramid,
                   "pooled: blocks of N, 2N, 4N, ... up to one block on the shorter side");
  add_query_options(command, o.queries, true);
  add_selection_options(command, o.selection);
  add_run_options(command, o.run);
  command.add_flag("--sync,!--no-sync", o.sync,
                   "make every commit durable: what is reported kept survives a power loss\n"
                   "(default); --no-sync survives a killed process only");
  command.add_flag("--resume", o.resume,
                   "go on with what an interrupted run left; start afresh where there is nothing");
  command.add_flag("--verify-all", o.verify_all,
                   "with --resume: read back everything that is there, not the last GiB alone");
  command.add_flag("--force", o.force,
                   "replace OUT once the new file is complete; give up what an interrupted run\n"
                   "left (with --resume: go on with it)");
  command.add_flag("--dry-run", o.dry_run, "print sizes, arithmetic and plan; write nothing");
  command.add_flag("--json", o.json, "print the plan of --dry-run, or what was written, as JSON");
  command.add_flag("--quiet", o.quiet, "no narration, no progress");
  command.footer(
      "Examples:\n"
      "  attnscope export dump/ -o maps.h5 --layers 12 --heads 0-3\n"
      "  attnscope export dump/ -o text.h5 --cols 0:226 --dtype f32\n"
      "  attnscope export dump/ -o row.h5 --query 6,15,22\n"
      "  attnscope export dump/ -o out.h5 --product output --layers 12\n"
      "  attnscope export --q q.npy --k k.npy --grid 13x30x45 --text 226@start -o maps.h5");
  return {command, [options] { return run_export(*options); }};
}

}  // namespace attnscope
