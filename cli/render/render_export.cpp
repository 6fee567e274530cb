#include "cli/render/render_export.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/common/command.h"
#include "cli/common/export_maps.h"
#include "cli/common/stored_input.h"
#include "cli/render/map_cells.h"
#include "cli/render/render_report.h"
#include "cli/render/render_stats.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/base/selection.h"
#include "core/products/softmax_domain.h"
#include "io/capture/unknown_state.h"
#include "io/export/read/export_files.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/pictures/joined_parts.h"
#include "io/pictures/matrix_picture.h"
#include "io/pictures/mosaic_picture.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

/// Bytes of a cell while it is pooled and drawn: two floats, sums, a flag, a sorted copy.
constexpr int64_t kStoredCellBytes = 32;

/// The heads of an export that are drawn, and the picture that they are drawn as.
struct ExportPicture {
  const RenderRequest& request;
  PictureKind kind;
  const Console& console;
  const ExportMaps& maps;
  std::vector<size_t> heads;  ///< selected, of maps.heads()

  const ExportedMap& first() const { return maps.heads()[heads.front()]; }
};

void check_request(const RenderRequest& o, PictureKind kind) {
  if (kind == PictureKind::filmstrip) {
    throw usage_error(fmt::format(
        "--picture filmstrip of an export: attnscope query {} --query T,Y,X -o {} draws it",
        one_line(o.capture.capture), one_line(o.out)));
  }
  if (kind != PictureKind::matrix && kind != PictureKind::mosaic) {
    throw usage_error(fmt::format(
        "--picture {}: {} is an export; of one matrix, mosaic and heatmap are drawn (the others "
        "need the capture)",
        picture_name(kind), one_line(o.capture.capture)));
  }
  if (o.dry_run) throw usage_error("--dry-run: nothing of an export is computed");
  if (!o.selection.cache.empty()) throw usage_error("--cache: nothing of an export is computed");
  check_export_options(o.capture, o.run);
}

std::vector<size_t> selected_heads(const ExportMaps& maps, const RenderRequest& o,
                                   const Console& console) {
  std::vector<HeadName> names;
  for (const ExportedMap& map : maps.heads()) names.push_back(map.name);
  return select_stored(names, o.selection, console);
}

/// The indices of the capture that --rows or --cols names; without it all that were exported.
IndexRange crop(const std::string& text, const char* option, IndexRange exported, int64_t unit) {
  if (text.empty()) return exported;
  const IndexRange wanted = parse_crop(text, option, exported.end);
  if (wanted.begin < exported.begin) {
    throw usage_error(
        fmt::format("{} {}: the export has {}:{}", option, text, exported.begin, exported.end));
  }
  const bool whole = (wanted.begin - exported.begin) % unit == 0 &&
                     ((wanted.end - exported.begin) % unit == 0 || wanted.end == exported.end);
  if (whole) return wanted;
  throw usage_error(
      fmt::format("{} {}: cuts blocks of the export, which has blocks of {} from {} on", option,
                  text, unit, exported.begin));
}

struct Crop {
  IndexRange rows, cols;
  int64_t longer() const { return std::max(rows.size(), cols.size()); }
};

Crop crop_of(const ExportPicture& picture, const ExportedMap& map) {
  if (map.single_rows > 0) {
    throw usage_error(fmt::format(
        "--picture {}: {} holds {} single rows, no matrix (attnscope query {} --index N shows one)",
        picture_name(picture.kind), one_line(picture.request.capture.capture), map.single_rows,
        one_line(picture.request.capture.capture)));
  }
  const int64_t unit = picture.maps.unit();
  return {crop(picture.request.rows, "--rows", map.rows, unit),
          crop(picture.request.cols, "--cols", map.cols, unit)};
}

int64_t block_of(const ExportPicture& picture, int64_t longer, int64_t usual_cells) {
  const RenderRequest& o = picture.request;
  const int64_t unit = picture.maps.unit();
  if (o.block == 0) {
    int64_t block = unit;
    while (ceil_div(longer, block) > usual_cells) block *= 2;
    return block;
  }
  if (o.block % unit != 0) {
    throw usage_error(fmt::format("--block {}: the export has blocks of {} (expected a multiple)",
                                  o.block, unit));
  }
  check_cells(longer, o.block);
  return o.block;
}

ColourChoice colours_of(const ExportPicture& picture) {
  return parse_colours(picture.request.colours,
                       picture.maps.is_logits() ? ScaleKind::linear : ScaleKind::log2);
}

std::string domain_of(const ExportPicture& picture) {
  std::vector<std::string> masks;
  for (const size_t head : picture.heads)
    masks.push_back(one_line(picture.maps.heads()[head].mask));
  return domain_text(one_line(picture.first().score), "all", masks);
}

void set_text(PictureText& text, const ExportPicture& picture, const std::string& what) {
  const std::string& model = picture.first().model;
  const std::string capture = one_line(picture.maps.stored().capture);
  const std::string file =
      one_line(std::filesystem::path(picture.request.capture.capture).filename().string());
  text.title = model.empty() ? capture : one_line(model);
  text.lines = {joined_parts({model.empty() ? "" : capture, what,
                              fmt::format("export {} ({})", file, picture.maps.dtype_name()),
                              picture.first().q_state.empty() ? kUnknownState : ""})};
}

/// Writes the picture; `facts` joins what --json prints.
void write_picture(const ExportPicture& picture, const Canvas& canvas, int64_t missing,
                   int64_t cells, const OrderedJson& facts) {
  const RenderRequest& o = picture.request;
  const std::string& title = picture.first().model;
  write_picture(canvas, style_of(o.page, o.out), one_line(title), o.out, o.force);
  OrderedJson all_facts{{"pool", o.pool}};
  all_facts.update(facts);
  all_facts["missing_cells"] = missing;
  OrderedJson drawn = OrderedJson::array();
  for (const size_t head : picture.heads) {
    drawn.push_back(name_json(picture.maps.heads()[head].name));
  }
  report_written(o, picture.console,
                 {picture_name(picture.kind), picture.heads.size(), canvas.width(), canvas.height(),
                  missing == 0 ? "" : fmt::format("; {} of {} cells are not there", missing, cells),
                  std::move(all_facts), std::move(drawn)});
}

void draw_matrix(const ExportPicture& picture) {
  if (picture.heads.size() > 1) {
    throw usage_error(fmt::format(
        "--picture matrix draws one head, and {} are selected: choose one with --layers and "
        "--heads, or take --picture mosaic",
        picture.heads.size()));
  }
  const ExportedMap& map = picture.first();
  const Crop part = crop_of(picture, map);
  const PictureStyle look = style_of(picture.request.page, picture.request.out);
  const int64_t block = block_of(picture, part.longer(), cells_on_page(look, kMatrixCells));
  MemoryBudget budget(memory_limit(picture.request.run));
  const int64_t cells = ceil_div(part.rows.size(), block) * ceil_div(part.cols.size(), block);
  const MemoryReservation memory =
      budget.reserve(cells * kStoredCellBytes + picture.maps.buffer_bytes(), "the map");
  const StoredPooledMap pooled =
      picture.maps.pooled(picture.heads.front(), part.rows, part.cols, block);
  MatrixContent content;
  content.map = pooled.map;
  if (pooled.missing_cells > 0) content.missing = pooled.missing;
  content.query_tokens = map.queries;
  content.key_tokens = map.keys;
  content.rows = part.rows;
  content.cols = part.cols;
  content.pool = parse_pool(picture.request.pool).value();
  content.colours = colours_of(picture);
  content.value_name = picture.maps.is_logits() ? "logit" : "weight";
  content.domain = domain_of(picture);
  content.look = look;
  set_text(content.text, picture, head_label(map.name));
  if (pooled.missing_cells > 0) {
    content.text.lines.push_back(
        fmt::format("hatched: {} of {} cells are not in the file", pooled.missing_cells, cells));
  }
  const MatrixPicture drawn(content);
  const MemoryReservation pixels = reserve_page(budget, {drawn.width(), drawn.height()});
  write_picture(picture, drawn.draw(), pooled.missing_cells, cells,
                {{"block", block}, {"cells", {pooled.map.rows, pooled.map.cols}}});
}

void draw_mosaic(const ExportPicture& picture) {
  int64_t longest = 1, all_cells = 0, missing = 0;
  std::vector<Crop> parts;
  std::vector<HeadName> names;
  for (const size_t head : picture.heads) {
    const ExportedMap& map = picture.maps.heads()[head];
    parts.push_back(crop_of(picture, map));
    names.push_back(map.name);
    longest = std::max(longest, parts.back().longer());
  }
  const int64_t block = block_of(picture, longest, kMosaicCells);
  for (const Crop& part : parts) {
    all_cells += ceil_div(part.rows.size(), block) * ceil_div(part.cols.size(), block);
  }
  MemoryBudget budget(memory_limit(picture.request.run));
  const MemoryReservation memory =
      budget.reserve(all_cells * kStoredCellBytes + picture.maps.buffer_bytes(), "the maps");
  const HeadTable table = table_of_heads(names);
  MosaicContent content;
  content.names = table.names;
  content.maps.resize(content.names.rows.size() * content.names.columns.size());
  for (size_t i = 0; i < picture.heads.size(); ++i) {
    StoredPooledMap pooled =
        picture.maps.pooled(picture.heads[i], parts[i].rows, parts[i].cols, block);
    missing += pooled.missing_cells;
    content.maps[table.places[i]] = std::move(pooled.map);
  }
  content.pool = parse_pool(picture.request.pool).value();
  content.cell_text = fmt::format("{} of {}×{} blocks", picture.request.pool, block, block);
  content.colours = colours_of(picture);
  content.value_name = picture.maps.is_logits() ? "logit" : "weight";
  content.domain = domain_of(picture);
  content.alike = picture.request.alike;
  content.look = style_of(picture.request.page, picture.request.out);
  set_text(content.text, picture, "attention maps, queries down, keys to the right");
  if (missing > 0) {
    content.text.lines.push_back(
        fmt::format("hatched: {} of {} cells are not in the file", missing, all_cells));
  }
  const MosaicPicture mosaic(content);
  const MemoryReservation pixels = reserve_page(budget, {mosaic.width(), mosaic.height()});
  write_picture(picture, mosaic.draw(), missing, all_cells, {{"block", block}});
}

}  // namespace

int render_export(const RenderRequest& o, PictureKind kind, const Console& console) {
  if (kind == PictureKind::heatmap) return render_stats(o, console);
  check_request(o, kind);
  const std::filesystem::path path = o.capture.capture;
  const auto maps = open_export_maps(path);
  const ExportPicture picture{o, kind, console, *maps, selected_heads(*maps, o, console)};
  OutputFile::check_target(o.out,
                           {.force = o.force, .inputs = files_of_export(path, maps->stored())});
  if (kind == PictureKind::matrix) {
    draw_matrix(picture);
  } else {
    draw_mosaic(picture);
  }
  return kExitOk;
}

}  // namespace attnscope
