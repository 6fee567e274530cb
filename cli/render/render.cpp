#include <fmt/core.h>

#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "cli/common/command.h"
#include "cli/common/unknown_state.h"
#include "cli/render/render_export.h"
#include "cli/render/render_films.h"
#include "cli/render/render_job.h"
#include "cli/render/render_maps.h"
#include "cli/run/capture_check.h"
#include "cli/run/head_where.h"
#include "cli/run/shard_option.h"
#include "core/base/error.h"
#include "io/capture/capture_guard.h"
#include "io/export/format/export_manifest.h"
#include "io/files/file_ending.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"

namespace attnscope {
namespace {

/// In the order of PictureKind.
constexpr std::array<void (*)(RenderJob&), 7> kPainters{
    render_matrix,  render_filmstrip, render_frames, render_mosaic,
    render_heatmap, render_text,      render_offsets};

/// Weights spread over octaves; masses and metrics are compared as they are.
/// On a logarithmic scale most of a film's weights are far above its low end, and would hide a
/// video.
ScaleKind usual_scale(PictureKind kind, bool over_video) {
  const bool shares = kind == PictureKind::frames || kind == PictureKind::heatmap;
  return shares || over_video ? ScaleKind::linear : ScaleKind::log2;
}

void check_name(const std::string& out, PictureKind kind) {
  std::vector<std::string_view> endings = picture_endings();
  const bool film =
      kind == PictureKind::filmstrip || kind == PictureKind::text || kind == PictureKind::offsets;
  if (film) endings.insert(endings.end(), {".gif", ".mp4"});
  require_ending(out, endings);
}

int run_render(const CommandParser& command, RenderRequest o) {
  const Console console(o.quiet);
  refuse_shard(
      o.shard,
      "a picture is not cut: draw what attnscope merge makes of parts, of export for maps, "
      "of stats -o FILE.h5 for numbers");
  refuse_tasks(o.shard, o.alone, o.out, kOneProcess);
  const PictureKind kind = parse_picture(o.picture);
  check_option_use(command, o, kind);
  ColourOptions colour_options = o.colours;
  // Where quantiles of a few numbers are meant, none of them is an outlier.
  if (usual_scale(kind, false) == ScaleKind::linear && colour_options.range == "auto") {
    colour_options.range = "p0:p100";
  }
  const ColourChoice colours = parse_colours(colour_options, usual_scale(kind, !o.overlay.empty()));
  check_name(o.out, kind);
  style_of(o.page, o.out);
  if (is_export_file(o.capture.capture)) return render_export(o, kind, console);
  const Capture capture = open_capture(o.capture, o.run, console);
  StreamRun run(o.run, memory_beside(capture, o.run), console, "render");
  check_capture(capture, o.capture, run.backend(), run.budget().room(), console);
  settle_where(o.selection, capture, o.run, console, o.dry_run);
  select_and_tell(capture, o.selection, console);
  if (o.dry_run) run.plan_only();
  const OverlayFiles overlay = find_overlay(o.overlay, capture);
  std::vector<std::filesystem::path> inputs = guarded_inputs(capture);
  inputs.insert(inputs.end(), overlay.files.begin(), overlay.files.end());
  OutputFile::check_target(o.out, {.force = o.force, .inputs = inputs});
  RenderJob job{o,
                kind,
                console,
                capture,
                colours,
                overlay,
                run,
                selected_heads(o, capture),
                OrderedJson::object()};
  job.drawn = drawn_json(job.heads);
  kPainters[static_cast<size_t>(kind)](job);
  // A film says what its query would take.
  if (o.dry_run && kind != PictureKind::filmstrip) {
    RunPlan plan = run.forecast();
    plan.picture = job.page;
    print_plan(plan, o.json);
  }
  return kExitOk;
}

}  // namespace

Command add_render_command(CLI::App& app) {
  auto request = std::make_shared<RenderRequest>();
  CommandParser command(app, "render", "pictures of attention maps, without a screen");
  add_render_options(command, *request);
  command.footer(
      "Examples:\n"
      "  attnscope render dump/ --picture matrix --layers 2 --heads 0 -o map.png\n"
      "  attnscope render dump/ --picture mosaic -o heads.png\n"
      "  attnscope render dump/ --picture frames --layers 2 --heads 0 -o frames.png\n"
      "  attnscope render dump/ --picture matrix --layers 2 --heads 0 --style paper --width 85mm "
      "-o map.pdf\n"
      "  attnscope render dump/ --picture filmstrip --query 3,8,7 --layers 2 -o film.png\n"
      "  attnscope render dump/ --picture filmstrip --query 3,8,7 --overlay frames/ -o film.gif\n"
      "  attnscope render dump/ --picture text --layers 0 --heads 3 -o words.png\n"
      "  attnscope render dump/ --picture heatmap --metric text_mass -o text_mass.png\n"
      "  attnscope render maps.h5 --picture matrix --heads 0 -o map.png   # an export, or its "
      ".part\n"
      "  attnscope render numbers.h5 --picture heatmap --metric entropy -o e.png   # of stats");
  return {command, [command, request] { return run_render(command, *request); }};
}

}  // namespace attnscope
