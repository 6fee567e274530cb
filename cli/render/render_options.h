#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/common/parser.h"
#include "cli/common/picture_options.h"
#include "cli/common/query_options.h"
#include "cli/run/head_run_options.h"
#include "core/products/pooled_map.h"
#include "io/pictures/colour_scale.h"

namespace attnscope {

/// The pictures that `render` draws.
enum class PictureKind : uint8_t { matrix, filmstrip, frames, mosaic, heatmap, text, offsets };
std::string_view picture_name(PictureKind kind);
/// Of one of the names that --picture takes.
PictureKind parse_picture(std::string_view name);

/// The colour map, the scale and the range of a picture, as its options name them.
struct ColourOptions {
  std::string map = "viridis";
  std::string scale;  ///< empty: what suits the picture
  std::string range = "auto";
};
/// Adds --colour-map --colour-scale --range.
void add_colour_options(CommandParser& command, ColourOptions& options);
/// Throws Error(usage) for what does not go together.
ColourChoice parse_colours(const ColourOptions& options, ScaleKind default_scale);

/// The options that a `render` command was given.
struct RenderRequest : HeadRunOptions {
  QueryOptions queries;
  ColourOptions colours;
  std::string picture;
  std::string domain = "all";
  std::string rows, cols;  ///< crops A:B; empty: all
  std::string pool = "max";
  std::string metric, overlay;
  std::string over = "tint";  ///< how the weights lie over the video
  double opacity = 1;         ///< of the tint
  std::string time;           ///< which moments are shown; empty: what suits the picture
  std::string segment;        ///< of filmstrips: of a token map, instead of its video
  // Of filmstrips; see QueryRequest.
  std::string weighting = "none";
  std::vector<std::string> mean;
  bool reverse = false;
  std::vector<std::string> text_tokens;
  int64_t block = 0;  ///< 0: chosen
  PictureOptions page;
  bool alike = false;
};

void add_render_options(CommandParser& command, RenderRequest& request);
/// Throws Error(usage) when an option was given that the picture has no use for, or has no such
/// value.
void check_option_use(const CommandParser& command, const RenderRequest& request, PictureKind kind);

}  // namespace attnscope
