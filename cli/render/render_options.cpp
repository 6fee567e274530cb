#include "cli/render/render_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "cli/common/output_options.h"
#include "cli/query/query_tasks.h"
#include "cli/run/shard_option.h"
#include "core/base/error.h"
#include "core/products/film_time.h"
#include "core/products/query_mean.h"
#include "core/products/softmax_domain.h"
#include "core/reduce/head_fields.h"
#include "io/pictures/colormap.h"
#include "io/pictures/film/film_over.h"

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 7> kPictures{"matrix",  "filmstrip", "frames", "mosaic",
                                                    "heatmap", "text",      "offsets"};

/// The pictures that have a use for an option that not all of them have.
struct OptionUse {
  const char* option;
  std::vector<PictureKind> kinds;
};

const std::vector<OptionUse>& option_uses() {
  using enum PictureKind;
  static const std::vector<OptionUse> uses{{"--query", {filmstrip}},
                                           {"--at", {filmstrip}},
                                           {"--index", {filmstrip}},
                                           {"--domain", {filmstrip, text}},
                                           {"--segment", {filmstrip}},
                                           {"--rows", {matrix, mosaic}},
                                           {"--cols", {matrix, mosaic}},
                                           {"--pool", {matrix, mosaic}},
                                           {"--block", {matrix, mosaic}},
                                           {"--metric", {heatmap}},
                                           {"--text-token", {filmstrip, text}},
                                           {"--overlay", {filmstrip, text}},
                                           {"--over", {filmstrip, text}},
                                           {"--opacity", {filmstrip, text}},
                                           {"--time", {filmstrip, text}},
                                           {"--alike", {mosaic, frames}},
                                           {"--reverse", {filmstrip}},
                                           {"--weighting", {filmstrip}},
                                           {"--mean", {filmstrip}},
                                           {"--frames", {filmstrip, text, offsets}},
                                           {"--columns", {filmstrip, text, offsets}},
                                           {"--cache", {filmstrip}}};
  return uses;
}

void add_film_options(CommandParser& command, RenderRequest& o) {
  command
      .add_option("--text-token", o.text_tokens,
                  "filmstrip, text: a text token by its number, word or phrase (repeatable; text:\n"
                  "default all but padding)")
      .one_value_each()
      .type_name("N|STRING");
  command
      .add_option(
          "--overlay", o.overlay,
          "filmstrip, text: the video in grey under the weights: a folder of .png files, or\n"
          "\"capture\" for the frames recorded with it")
      .type_name("DIR");
  command
      .add_option(
          "--over", o.over,
          "with --overlay, over the video: a tint; the outline of the cells that hold half\n"
          "of a strip's weight; contours at 20, 40, 60 and 80 % of the scale: {}")
      .one_of(film_mode_names())
      .type_name("NAME");
  command
      .add_option(
          "--opacity", o.opacity,
          "with --overlay, of the tint: 1 leaves 15 % of the video under the largest weight")
      .type_name("X");
  command
      .add_option(
          "--time", o.time,
          "with --overlay, the moments: latent frames; every picture of the video, nearest\n"
          "(with its latent frame's weights; default of .gif) or linear in between: {}")
      .one_of(film_time_names())
      .type_name("NAME");
  command.add_flag("--reverse", o.reverse, "filmstrip: who attends to the token, as a key");
  command.add_option("--weighting", o.weighting, "filmstrip: none, or value: weights times |v|")
      .one_of(weighting_names())
      .type_name("NAME");
  command.add_option("--mean", o.mean, "filmstrip: averaged over these: {}")
      .one_of(mean_axis_names())
      .delimiter(',')
      .one_value_each()
      .type_name("AXES");
}

void add_picture_options(CommandParser& command, RenderRequest& o) {
  command
      .add_option("--picture", o.picture,
                  "matrix (one head's whole map), filmstrip (one token's attention),\n"
                  "frames (frame x frame masses), mosaic (a small map a head),\n"
                  "heatmap (a metric of every head), text (where each word is attended from),\n"
                  "offsets (mass by dt, dy, dx from the query)")
      .one_of({kPictures.begin(), kPictures.end()})
      .required()
      .type_name("NAME");
  command
      .add_option("-o", o.out,
                  "the picture: .png, .svg, .pdf; of filmstrip, text and offsets also\n"
                  "one that moves: .gif, .mp4")
      .required()
      .type_name("FILE");
  command.add_option("--rows", o.rows, "matrix, mosaic: query rows A:B (half-open)")
      .type_name("A:B");
  command.add_option("--cols", o.cols, "matrix, mosaic: keys A:B").type_name("A:B");
  command.add_option("--pool", o.pool, "matrix, mosaic: what a cell shows of its block")
      .one_of(pool_names())
      .type_name("max|mean");
  command
      .add_option("--block", o.block,
                  "matrix, mosaic: tokens a cell; by default the smallest power of two that keeps\n"
                  "a matrix within 1024 cells, a mosaic's maps within 64")
      .in_range(1, int64_t{1} << 30)
      .type_name("N");
  command.add_option("--metric", o.metric, "heatmap: any number of stats: entropy, text_mass, ...")
      .words(metric_names())
      .type_name("NAME");
  add_film_options(command, o);
  command.add_flag("--alike", o.alike,
                   "mosaic, frames: one colour range for all heads, not one a head");
}

}  // namespace

std::string_view picture_name(PictureKind kind) { return kPictures[static_cast<size_t>(kind)]; }

PictureKind parse_picture(std::string_view name) {
  const auto* const found = std::find(kPictures.begin(), kPictures.end(), name);
  assert(found != kPictures.end());
  return static_cast<PictureKind>(found - kPictures.begin());
}

void add_colour_options(CommandParser& command, ColourOptions& o) {
  const std::string group = "Colours";
  command.add_option("--colour-map", o.map, "{}")
      .one_of(colormap_names())
      .type_name("NAME")
      .group(group);
  command.add_option("--colour-scale", o.scale, "{}")
      .one_of(scale_kind_names())
      .type_name("NAME")
      .group(group);
  command
      .add_option(
          "--range", o.range,
          "the values at the colours' ends: auto (by the mass), LO:HI, or percentiles pA:pB")
      .type_name("RANGE")
      .group(group);
}

ColourChoice parse_colours(const ColourOptions& o, ScaleKind default_scale) {
  ColourChoice choice;
  choice.map = parse_colormap(o.map).value();
  choice.scale = o.scale.empty() ? default_scale : parse_scale_kind(o.scale).value();
  choice.range = parse_range_choice(o.range, "--range");
  check_colour_choice(choice, "--range");
  return choice;
}

void add_render_options(CommandParser& command, RenderRequest& o) {
  add_capture_options(command, o.capture);
  add_picture_options(command, o);
  add_query_options(command, o.queries, false);
  command
      .add_option("--domain", o.domain,
                  "filmstrip, text: over which keys rows are renormalised: {}")
      .one_of(domain_names())
      .type_name("NAME");
  command
      .add_option("--segment", o.segment,
                  "filmstrip: show this segment of a capture's token map instead of its video")
      .type_name("NAME");
  add_colour_options(command, o.colours);
  add_picture_options(command, o.page);
  add_head_run_options(command, o);
  add_output_options(command, o,
                     {.dry_run = "print what it would take; compute nothing",
                      .json = "print what was drawn as JSON"});
}

namespace {

void check_over_video(const CommandParser& command, const RenderRequest& o) {
  for (const char* option : {"--over", "--opacity", "--time"}) {
    if (command.count(option) > 0 && o.overlay.empty()) {
      throw usage_error(fmt::format("{}: has no use without --overlay, the video", option));
    }
  }
  if (!(o.opacity > 0 && o.opacity <= 1)) {
    throw usage_error(fmt::format("--opacity {}: expected a number above 0, at most 1", o.opacity));
  }
  if (command.count("--opacity") > 0 && o.over != film_mode_name(FilmMode::tint)) {
    throw usage_error(fmt::format("--opacity: --over {} has no use for it (only tint)", o.over));
  }
}

}  // namespace

void check_option_use(const CommandParser& command, const RenderRequest& request,
                      PictureKind kind) {
  check_over_video(command, request);
  for (const OptionUse& use : option_uses()) {
    if (command.count(use.option) == 0) continue;
    const bool is_of_where =
        std::string_view(use.option) == "--cache" && command.is_given("--where");
    if (is_of_where) continue;
    if (std::find(use.kinds.begin(), use.kinds.end(), kind) != use.kinds.end()) continue;
    std::string pictures;
    for (const PictureKind other : use.kinds) {
      pictures += fmt::format("{}{}", pictures.empty() ? "" : " and ", picture_name(other));
    }
    throw usage_error(fmt::format("{}: --picture {} has no use for it (only {})", use.option,
                                  picture_name(kind), pictures));
  }
}

}  // namespace attnscope
