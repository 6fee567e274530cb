#include "cli/render_export.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/stored_input.h"
#include "core/checked_math.h"
#include "core/error.h"
#include "core/memory_budget.h"
#include "core/selection.h"
#include "io/export_file.h"
#include "io/matrix_picture.h"

namespace attnscope {
namespace {

constexpr int64_t kUsualCells = 1024;
/// A map of more cells is no picture any more.
constexpr int64_t kMostCells = 4096;
/// Bytes of a cell while it is pooled and drawn: two floats, a sum, a flag, a sorted copy.
constexpr int64_t kCellBytes = 24;

void check_request(const RenderRequest& o, PictureKind kind) {
  if (kind == PictureKind::filmstrip) {
    throw usage_error(fmt::format(
        "--picture filmstrip of an export: attnscope query {} --query T,Y,X -o {} draws it",
        one_line(o.capture.capture), one_line(o.out)));
  }
  if (kind != PictureKind::matrix) {
    throw usage_error(fmt::format(
        "--picture {}: {} is an export; only --picture matrix is drawn of one (the others need "
        "the capture)",
        picture_name(kind), one_line(o.capture.capture)));
  }
  if (o.dry_run) throw usage_error("--dry-run: nothing of an export is computed");
  check_export_options(o.capture, o.run);
}

StoredHead one_head(const StoredMaps& maps, const SelectionOptions& selection) {
  const std::vector<StoredHead> heads = select_stored(maps, selection);
  if (heads.size() > 1) {
    throw usage_error(
        fmt::format("--picture matrix draws one head, and {} are selected: choose one with "
                    "--layers and --heads",
                    heads.size()));
  }
  return heads.front();
}

/// Positions of the exported tokens that --rows or --cols name by the capture's indices.
IndexRange crop(const std::string& text, const char* option, IndexRange exported) {
  if (text.empty()) return {0, exported.size()};
  const IndexRange wanted = parse_crop(text, option, exported.end);
  if (wanted.begin < exported.begin) {
    throw usage_error(
        fmt::format("{} {}: the export has {}:{}", option, text, exported.begin, exported.end));
  }
  return {wanted.begin - exported.begin, wanted.end - exported.begin};
}

/// Rows of a matrix are neighbours.
IndexRange exported_rows(const StoredMaps& maps, const StoredHead& head) {
  const std::vector<int64_t>& queries = head.facts->queries;
  const IndexRange range{queries.front(), queries.back() + 1};
  if (range.size() == static_cast<int64_t>(queries.size())) return range;
  throw usage_error(fmt::format(
      "--picture matrix: {} holds {} single rows, no matrix (attnscope query {} --index N shows "
      "one)",
      maps.path().string(), queries.size(), maps.path().string()));
}

int64_t block_of(const RenderRequest& o, int64_t longer) {
  if (o.block == 0) {
    int64_t block = 1;
    while (ceil_div(longer, block) > kUsualCells) block *= 2;
    return block;
  }
  if (ceil_div(longer, o.block) <= kMostCells) return o.block;
  throw usage_error(fmt::format(
      "--block {}: makes {} cells of {} tokens, more than the {} of a picture; take at least {}",
      o.block, ceil_div(longer, o.block), longer, kMostCells, ceil_div(longer, kMostCells)));
}

ColourChoice colours_of(const RenderRequest& o, bool logits) {
  return parse_colours(o.colours, logits ? ScaleKind::linear : ScaleKind::log2);
}

void report(const RenderRequest& o, const StoredPooledMap& pooled, const Canvas& canvas,
            const Console& console) {
  const std::string missing =
      pooled.missing_cells == 0
          ? ""
          : fmt::format("; {} of {} cells are not there", pooled.missing_cells,
                        pooled.map.rows * pooled.map.cols);
  console.say(fmt::format("wrote {} (matrix, 1 head, {} × {} pixels{})", o.out, canvas.width(),
                          canvas.height(), missing));
  if (!o.json) return;
  print_json({{"format", "attnscope-render/1"},
              {"file", o.out},
              {"picture", "matrix"},
              {"heads", 1},
              {"width", canvas.width()},
              {"height", canvas.height()},
              {"block", pooled.map.block_rows},
              {"pool", o.pool},
              {"cells", {pooled.map.rows, pooled.map.cols}},
              {"missing_cells", pooled.missing_cells}},
             true);
}

}  // namespace

int render_export(const RenderRequest& o, PictureKind kind, const Console& console) {
  check_request(o, kind);
  const StoredMaps maps(o.capture.capture);
  const StoredHead head = one_head(maps, o.selection);
  const IndexRange all_rows = exported_rows(maps, head);
  const IndexRange rows = crop(o.rows, "--rows", all_rows);
  const IndexRange cols = crop(o.cols, "--cols", head.facts->keys);
  const std::vector<std::filesystem::path> inputs(1, maps.path());
  ExportFile::check_target(o.out, {.force = o.force, .inputs = inputs});
  const int64_t longer = std::max(rows.size(), cols.size());
  const int64_t block = block_of(o, longer);
  MemoryBudget budget(memory_limit(o.run));
  const int64_t side = std::max<int64_t>(ceil_div(longer, block), 1024) + 512;
  const int64_t cells = ceil_div(rows.size(), block) * ceil_div(cols.size(), block);
  const MemoryReservation memory = budget.reserve(
      cells * kCellBytes + side * side * 3 + 2 * head.group->grid.chunk_bytes() * 4, "the picture");
  StoredPooledMap pooled = pool_stored(maps, head, rows, cols, block);
  MatrixContent content;
  content.map = pooled.map;
  if (pooled.missing_cells > 0) content.missing = pooled.missing;
  content.query_tokens = head.facts->query_tokens;
  content.key_tokens = head.facts->key_tokens;
  content.rows = {all_rows.begin + rows.begin, all_rows.begin + rows.end};
  content.cols = {head.facts->keys.begin + cols.begin, head.facts->keys.begin + cols.end};
  content.pool = parse_pool(o.pool);
  content.colours = colours_of(o, maps.is_logits());
  content.value_name = maps.is_logits() ? "logit" : "weight";
  content.domain = head.facts->score == "softmax" ? "softmax domain all"
                                                  : one_line(head.facts->score) + " scores";
  const std::string capture = one_line(maps.stored().capture);
  content.text.title = head.facts->model.empty() ? capture : one_line(head.facts->model);
  content.text.lines = {
      joined_parts({head.facts->model.empty() ? "" : capture, stored_label(head),
                    fmt::format("export {} ({})", one_line(maps.path().filename().string()),
                                maps.dtype_name(head))})};
  if (pooled.missing_cells > 0) {
    content.text.lines.push_back(
        fmt::format("hatched: {} of {} cells are not in the file", pooled.missing_cells, cells));
  }
  const Canvas canvas = MatrixPicture(content).draw();
  write_canvas_png(canvas, o.out, o.force);
  report(o, pooled, canvas, console);
  return kExitOk;
}

}  // namespace attnscope
