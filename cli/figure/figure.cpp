#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common/capture_options.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/head_table.h"
#include "cli/common/left_out_names.h"
#include "cli/common/output_options.h"
#include "cli/common/pixel_query.h"
#include "cli/common/query_options.h"
#include "cli/common/shell_words.h"
#include "cli/common/unknown_state.h"
#include "cli/run/capture_check.h"
#include "cli/run/head_where.h"
#include "cli/run/shard_option.h"
#include "cli/run/stream_run.h"
#include "core/base/error.h"
#include "core/base/selection.h"
#include "core/base/split_text.h"
#include "core/problem/head_name.h"
#include "core/stream/tile_plan.h"
#include "io/capture/capture.h"
#include "io/capture/capture_guard.h"
#include "io/capture/unknown_state.h"
#include "io/export/format/export_manifest.h"
#include "io/files/file_ending.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/files/staged_file.h"
#include "io/segments/head_name_json.h"
#include "web/figure/head/figure_choice.h"
#include "web/figure/head/figure_cut.h"
#include "web/figure/head/figure_document.h"

namespace attnscope {
namespace {

/// The values of the options of `attnscope figure`.
struct FigureRequest {
  CaptureOptions capture;
  SelectionOptions selection;
  RunOptions run;
  FigureChoice choice;
  QueryOptions query;
  std::string zoom, title, caption, style = "reader";
  std::string out;
  bool alone = false, dry_run = false, force = false, json = false, quiet = false;
};

void check_request(const FigureRequest& o) {
  require_ending(o.out, {".html", ".htm"});
  if (is_export_file(o.capture.capture)) {
    throw usage_error(
        o.capture.capture +
        ": an export has no queries and keys, which a figure is made of: give the capture");
  }
}

/// The one head of the selection.
struct ChosenHead {
  const CallEntry* call = nullptr;
  int64_t batch = 0, head = 0;
};

/// `supposed`: a dry run does not know which of the heads will be left.
ChosenHead choose_head(const FigureRequest& o, const Capture& capture, bool supposed) {
  std::vector<ChosenHead> heads;
  for (const SelectedCall& selected : capture.select(parse_selection(o.selection))) {
    for (const int64_t batch : selected.batch) {
      for (const int64_t head : selected.heads) heads.push_back({selected.call, batch, head});
    }
  }
  if (heads.size() == 1 || supposed) return heads.front();
  throw usage_error(
      fmt::format("a figure is of one head, and {} are selected: choose one with --layers and "
                  "--heads, and where there "
                  "are several --steps, --batch, --branch and --kind",
                  heads.size()));
}

/// The ranges of --zoom Q0,Q1,K0,K1.
std::array<IndexRange, 2> parse_zoom(const std::string& text, const AttentionProblem& problem) {
  const std::vector<std::string_view> parts = split_text(text, ',');
  const std::vector<std::string> ends(parts.begin(), parts.end());
  const bool is_whole = std::none_of(ends.begin(), ends.end(), [](const auto& end) {
    return end.empty() || end.find_first_not_of("0123456789") != std::string::npos;
  });
  if (ends.size() != 4 || !is_whole) {
    throw usage_error(fmt::format(
        "--zoom {}: expected four whole numbers Q0,Q1,K0,K1, the queries and keys that are seen, "
        "half-open: 448,592,448,592",
        text));
  }
  return {parse_crop(ends[0] + ":" + ends[1], "--zoom (queries)", problem.num_queries()),
          parse_crop(ends[2] + ":" + ends[3], "--zoom (keys)", problem.num_keys())};
}

FigureStart make_start(const FigureRequest& o, const FigureCut& cut, const CallEntry& call) {
  const AttentionProblem& problem = *cut.problem;
  FigureStart start;
  start.caption = o.caption;
  if (o.query.any()) {
    const auto tokens =
        resolve_tokens(o.query, {problem.query_tokens(), call.tokens_of(cut.batch), problem.name()})
            .tokens;
    if (tokens.size() != 1) {
      throw usage_error(
          fmt::format("a figure begins with one query, and {} are chosen", tokens.size()));
    }
    start.query = tokens.front();
  }
  if (!o.zoom.empty()) start.zoom = parse_zoom(o.zoom, problem);
  require_start(start, cut);
  return start;
}

int64_t write_page(const FigureRequest& o, const FigureSource& source, const FigureCut& cut,
                   const FigureMap& map) {
  StagedFile file(o.out, o.force);
  int64_t bytes = 0;
  write_figure(source, cut, map, [&](std::string_view text) {
    file.append(std::as_bytes(std::span(text.data(), text.size())));
    bytes += static_cast<int64_t>(text.size());
  });
  file.commit();
  return bytes;
}

/// The command that makes this page, with names of files alone: a page is sent to others.
std::string figure_command(const FigureRequest& request, const std::filesystem::path& capture,
                           const CallEntry& call, const FigureCut& cut, const FigureStart& start) {
  const CallId& id = call.id;
  std::string text =
      fmt::format("attnscope figure {} --steps {}", shell_word(file_name(capture)), id.step);
  if (id.layer != kNoLayer) text += fmt::format(" --layers {}", id.layer);
  for (const auto& [option, values] :
       std::array<std::pair<const char*, const std::vector<std::string>*>, 4>{
           {{"--branch", &request.selection.branches},
            {"--kind", &request.selection.kinds},
            {"--blocks", &request.selection.blocks},
            {"--slots", &request.selection.slots}}}) {
    for (const std::string& value : *values) {
      text += fmt::format(" {} {}", option, shell_word(value));
    }
  }
  text += fmt::format(" --batch {} --heads {}", cut.batch, cut.head);
  const FigureChoice& choice = request.choice;
  if (!choice.rows.empty()) text += " --rows " + shell_word(choice.rows);
  if (!choice.cols.empty()) text += " --cols " + shell_word(choice.cols);
  if (choice.stride > 1) text += fmt::format(" --stride {}", choice.stride);
  if (start.query) text += fmt::format(" --index {}", *start.query);
  for (const auto& [option, value] : std::array<std::pair<const char*, const std::string*>, 3>{
           {{"--zoom", &request.zoom},
            {"--title", &request.title},
            {"--caption", &request.caption}}}) {
    if (!value->empty()) text += fmt::format(" {} {}", option, shell_word(*value));
  }
  if (request.style != "reader") text += " --style " + request.style;
  return text + " -o " + shell_word(file_name(request.out));
}

/// "CogVideoX-2b, step 0 layer 12 cond joint batch 0 head 3".
std::string figure_title(const std::filesystem::path& capture, const CallEntry& call,
                         const FigureCut& cut) {
  const std::string& model = call.model;
  return fmt::format("{}, {}{}", model.empty() ? file_name(capture) : model,
                     head_label(head_name(call.id, cut.batch, cut.head)),
                     is_state_unknown(call) ? std::string(", ") + kUnknownState : "");
}

/// `is_chosen`: the head is known, which a dry run may leave to the numbers of --where.
void report(const FigureRequest& o, const Console& console, const FigureCut& cut, int64_t bytes,
            bool is_chosen = true) {
  const char* const verb = o.dry_run ? "would write" : "wrote";
  const char* const about = o.dry_run ? "about " : "";
  console.say(fmt::format("{} {} ({}{:.2f} MB: {} queries, {} keys)", verb, o.out, about,
                          static_cast<double>(bytes) * 1e-6, cut.rows.count, cut.keys.count));
  if (!o.dry_run) {
    console.say("note: the page contains the head's queries and keys" +
                std::string(cut.rows.all() && cut.keys.all() ? "" : ", those that were chosen"));
  }
  if (!o.json) return;
  OrderedJson json{
      {"format", "attnscope-figure/1"}, {"file", o.out},          {"bytes", bytes},
      {"queries", cut.rows.count},      {"keys", cut.keys.count}, {"dry_run", o.dry_run}};
  add_left_out(json, o.capture);
  json["heads"] = OrderedJson::array();
  if (is_chosen) {
    json["heads"].push_back(name_json(head_name(cut.problem->id(), cut.batch, cut.head)));
  }
  print_json(json, true);
}

int run_figure(FigureRequest o) {
  const Console console(o.quiet);
  refuse_tasks("", o.alone, o.out, kOneProcess);
  check_request(o);
  const Capture capture = open_capture(o.capture, o.run, console);
  StreamRun run(o.run, memory_beside(capture, o.run), console, "figure");
  check_capture(capture, o.capture, run.backend(), run.budget().room(), console);
  const SettledWhere where = settle_where(o.selection, capture, o.run, console, o.dry_run);
  const ChosenHead chosen = choose_head(o, capture, where.plan.has_value());
  const AttentionProblem& problem = *chosen.call->problem;
  select_and_tell(capture, o.selection, console);
  const FigureCut cut = make_cut(o.choice, problem, chosen.batch, chosen.head);
  settle_pixels(std::array{pixel_sequence(*chosen.call, false, o.capture)}, o.query, console);
  const FigureStart start = make_start(o, cut, *chosen.call);
  require_page(cut);
  OutputFile::check_target(o.out, {.force = o.force, .inputs = guarded_inputs(capture)});
  const MemoryReservation held =
      run.budget().reserve(figure_map_bytes(cut), "the page's queries and keys");
  const FigureMap map = make_figure_map(cut, [&](std::span<const HeadTask> tasks, TileSink& sink) {
    if (!o.dry_run) return run.run(tasks, sink);
    // It throws where a run would have too little memory.
    plan_tiles(tasks, sink.request(), run.backend(), run.budget().room(), o.run.threads);
  });
  if (o.dry_run) {
    report(o, console, cut, whole_page_bytes(cut), !where.plan);
    return kExitOk;
  }
  const FigureSource source{
      *chosen.call,
      o.title.empty() ? figure_title(capture.path(), *chosen.call, cut) : o.title,
      figure_command(o, capture.path(), *chosen.call, cut, start),
      run.backend().name_for(problem),
      start,
      parse_page_style(o.style)};
  capture.require_unchanged();
  report(o, console, cut, write_page(o, source, cut, map));
  return kExitOk;
}

void add_figure_options(CommandParser& command, FigureRequest& o) {
  add_capture_options(command, o.capture);
  command.add_option("-o", o.out, "the page, a file that ends in .html")
      .required()
      .type_name("FILE");
  command
      .add_option(
          "--rows", o.choice.rows,
          "the page has these query rows alone: A:B, half-open; weights stay those of the map")
      .type_name("A:B");
  command.add_option("--cols", o.choice.cols, "the page has these keys alone: A:B")
      .type_name("A:B");
  command
      .add_option("--stride", o.choice.stride,
                  "the page has every N-th of these rows and keys: a large head in a small page")
      .in_range(1, int64_t{1} << 20)
      .type_name("N");
  add_query_options(command, o.query, false);
  command
      .add_option("--zoom", o.zoom,
                  "the queries and keys that are seen at first, half-open; else the whole map")
      .type_name("Q0,Q1,K0,K1");
  command.add_option("--title", o.title, "the page's heading; else the model and the head's name")
      .type_name("WORDS");
  command.add_option("--caption", o.caption, "words below the heading").type_name("WORDS");
  command
      .add_option("--style", o.style,
                  "the page's ground: as its reader's browser has it, dark, or white as paper")
      .one_of(page_style_names())
      .type_name("NAME");
  add_selection_options(command, o.selection);
  add_run_options(command, o.run);
  add_alone_option(command, o.alone);
  add_output_options(
      command, o,
      {.dry_run = "say how large the page would be, but for words and a mask; write nothing",
       .json = "print what was written as JSON"});
}

}  // namespace

Command add_figure_command(CLI::App& app) {
  auto request = std::make_shared<FigureRequest>();
  CommandParser command(app, "figure",
                        "one head as a page to look into, a single file without a server");
  add_figure_options(command, *request);
  command.footer(
      "The page opens from a disk in any browser that has WebAssembly with SIMD. It contains the "
      "head's\n"
      "queries and keys: whoever has the page has these.\n"
      "Examples:\n"
      "  attnscope figure dump/ --layers 12 --heads 3 -o map.html\n"
      "  attnscope figure dump/ --layers 12 --heads 3 --query 6,15,22 -o map.html\n"
      "  attnscope figure dump/ --layers 12 --heads 3 --rows 0:4096 -o part.html\n"
      "  attnscope figure dump/ --layers 12 --heads 3 --stride 4 -o coarse.html");
  return {command, [request] { return run_figure(*request); }};
}

}  // namespace attnscope
