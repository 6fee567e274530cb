#include "cli/render/render_maps.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/render/map_cells.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/products/map_reductions.h"
#include "io/capture/evictions.h"
#include "io/files/json_types.h"
#include "io/pictures/joined_parts.h"
#include "io/pictures/matrix_picture.h"
#include "io/pictures/metric_table.h"
#include "io/pictures/mosaic_picture.h"

namespace attnscope {
namespace {

/// Bytes of a cell in a picture under way: two floats, a sorted copy for the range, pixels.
constexpr int64_t kComputedCellBytes = 16;

/// The block that was asked for, or one that leaves at most `cells`; checked.
int64_t chosen_block(const RenderJob& job, std::span<const HeadTask> tasks, int64_t cells) {
  const int64_t block = job.request.block;
  if (block == 0) return fitting_block(tasks, cells);
  for (const HeadTask& task : tasks) {
    check_cells(std::max(task.num_rows(), task.keys.size()), block);
  }
  return block;
}

/// Memory for the maps that a picture holds, and for its pixels.
MemoryReservation reserve_picture(RenderJob& job, std::span<const HeadTask> tasks, int64_t block,
                                  int64_t pixels) {
  int64_t bytes = pixels * 3;
  for (const HeadTask& task : tasks) {
    bytes +=
        ceil_div(task.num_rows(), block) * ceil_div(task.keys.size(), block) * kComputedCellBytes;
  }
  return job.run.budget().reserve(bytes, "the picture");
}

std::string crop_text(const HeadTask& task) {
  if (task.num_rows() == task.problem->num_queries() &&
      task.keys.size() == task.problem->num_keys()) {
    return "";
  }
  return fmt::format("queries {} to {}, keys {} to {}", task.rows.begin, task.rows.end - 1,
                     task.keys.begin, task.keys.end - 1);
}

/// Hatches what a cache had dropped before the queries came, and says so.
void hatch_evicted(RenderJob& job, const HeadTask& task, int64_t block, MatrixContent& content) {
  const auto evicted = evictions_of(*job.heads.front().call);
  if (evicted.empty()) return;
  content.missing = evicted_cells(evicted, task.rows, task.keys, block);
  const auto cells = std::count(content.missing.begin(), content.missing.end(), uint8_t{1});
  job.facts["evicted_cells"] = cells;
  if (cells == 0) return;
  content.text.lines.push_back(fmt::format("hatched: {} of {} cells were evicted from the cache",
                                           cells, content.missing.size()));
}

/// Sets evicted cells to NaN in the maps of a mosaic, a map a head: it hatches cells that are NaN.
void hatch_evicted(RenderJob& job, std::span<const HeadTask> tasks, int64_t block,
                   std::vector<PooledMap>& maps, PictureText& text) {
  int64_t hatched = 0, cells = 0;
  for (size_t i = 0; i < maps.size(); ++i) {
    const auto evicted = evictions_of(*job.heads[i].call);
    cells += maps[i].rows * maps[i].cols;
    if (evicted.empty()) continue;
    const auto missing = evicted_cells(evicted, tasks[i].rows, tasks[i].keys, block);
    for (size_t cell = 0; cell < missing.size(); ++cell) {
      if (missing[cell] == 0) continue;
      maps[i].mean[cell] = maps[i].max[cell] = std::numeric_limits<float>::quiet_NaN();
      ++hatched;
    }
    job.facts["evicted_cells"] = hatched;
  }
  if (hatched == 0) return;
  text.lines.push_back(
      fmt::format("hatched: {} of {} cells were evicted from the cache", hatched, cells));
}

std::string segment_name(int64_t segment) {
  return segment == SegmentMass::kText ? "text" : std::to_string(segment);
}

/// Masses as a map of single cells, so that a mosaic can show them.
PooledMap as_map(const SegmentMass& mass) {
  PooledMap map;
  map.rows = static_cast<int64_t>(mass.query_segments.size());
  map.cols = static_cast<int64_t>(mass.key_segments.size());
  map.mean.assign(mass.mass.begin(), mass.mass.end());
  map.max = map.mean;
  return map;
}

/// Frames are what the picture is about.
void require_frames(const RenderJob& job) {
  for (const RenderHead& head : job.heads) {
    const AttentionProblem& problem = *head.call->problem;
    if (problem.query_tokens().has_grid() || problem.key_tokens().has_grid()) continue;
    throw usage_error("--picture frames: " + problem.name() +
                      " has no token grid; give --grid TxHxW");
  }
}

void draw_frame_table(RenderJob& job, const SegmentMass& mass) {
  MetricTable table;
  table.text.title = page_title(job);
  table.text.lines = {
      joined_parts({capture_text(job), head_label(job.heads.front())}),
      joined_parts(
          {"mass that the queries of a frame put on the keys of another, mean over queries",
           "exact", domain_text(job, "all")})};
  table.names.row_name = "query";
  table.names.column_name = "key frame";
  for (const int64_t s : mass.query_segments) table.names.rows.push_back(segment_name(s));
  for (const int64_t s : mass.key_segments) table.names.columns.push_back(segment_name(s));
  table.value_name = "mass";
  table.values.assign(mass.mass.begin(), mass.mass.end());
  table.colours = job.colours;
  table.look = picture_look(job);
  job.facts["mass"] = mass.mass;
  write_picture(job, HeatTablePicture(table).draw());
}

void draw_mosaic(RenderJob& job, MosaicContent content, const std::vector<PooledMap>& maps) {
  content.names = head_names(job);
  content.maps.resize(content.names.rows.size() * content.names.columns.size());
  const std::vector<size_t> places = head_places(job);
  for (size_t i = 0; i < maps.size(); ++i) content.maps[places[i]] = maps[i];
  content.text.title = page_title(job);
  content.domain = domain_text(job, "all");
  content.colours = job.colours;
  content.alike = job.request.alike;
  content.look = picture_look(job);
  const MosaicPicture picture(content);
  const auto pixels = job.run.budget().reserve(
      static_cast<int64_t>(picture.width()) * picture.height() * 3, "the picture");
  write_picture(job, picture.draw());
}

}  // namespace

void render_matrix(RenderJob& job) {
  require_one_head(job, "take --picture mosaic");
  const std::vector<HeadTask> tasks = map_tasks(job);
  const HeadTask& task = tasks.front();
  const PictureStyle look = picture_look(job);
  const int64_t block = chosen_block(job, tasks, cells_on_page(look, kMatrixCells));
  const int64_t longer = ceil_div(std::max(task.num_rows(), task.keys.size()), block);
  const int64_t side =
      std::max<int64_t>({longer * std::max(1, look.cell), look.page_width, look.px(1024)}) +
      look.px(512);
  const MemoryReservation memory = reserve_picture(job, tasks, block, side * side);
  const auto maps = pooled_maps(tasks, block, job.run);
  if (maps.empty()) return;
  MatrixContent content;
  content.map = maps.front();
  content.query_tokens = task.problem->query_tokens();
  content.key_tokens = task.problem->key_tokens();
  content.rows = task.rows;
  content.cols = task.keys;
  content.pool = parse_pool(job.request.pool).value();
  content.colours = job.colours;
  content.domain = domain_text(job, "all");
  content.text.title = page_title(job);
  content.text.lines = {
      joined_parts({capture_text(job), head_label(job.heads.front()), crop_text(task)})};
  content.look = look;
  hatch_evicted(job, task, block, content);
  job.facts["block"] = block;
  job.facts["pool"] = job.request.pool;
  job.facts["cells"] = {content.map.rows, content.map.cols};
  write_picture(job, MatrixPicture(content).draw());
}

void render_mosaic(RenderJob& job) {
  const std::vector<HeadTask> tasks = map_tasks(job);
  const int64_t block = chosen_block(job, tasks, kMosaicCells);
  const MemoryReservation memory = reserve_picture(job, tasks, block, 0);
  auto maps = pooled_maps(tasks, block, job.run);
  if (maps.empty()) return;
  MosaicContent content;
  content.pool = parse_pool(job.request.pool).value();
  content.cell_text = pooling_text(maps.front(), content.pool);
  content.text.lines = {
      joined_parts({capture_text(job), "attention maps, queries down, keys to the right",
                    crop_text(tasks.front())})};
  hatch_evicted(job, tasks, block, maps, content.text);
  job.facts["block"] = block;
  job.facts["pool"] = job.request.pool;
  draw_mosaic(job, std::move(content), maps);
}

void render_frames(RenderJob& job) {
  require_frames(job);
  const auto masses = segment_masses(map_tasks(job), job.run);
  if (masses.empty()) return;
  if (masses.size() == 1) return draw_frame_table(job, masses.front());
  std::vector<PooledMap> maps;
  for (const SegmentMass& mass : masses) maps.push_back(as_map(mass));
  MosaicContent content;
  content.cell_text = "mass of key frames, mean over the queries of a frame";
  content.value_name = "mass";
  content.text.lines = {
      joined_parts({capture_text(job), "frame × frame, queries down, keys to the right"})};
  draw_mosaic(job, std::move(content), maps);
}

void render_heatmap(RenderJob& job) {
  const auto names = metric_names();
  const std::string& metric = job.request.metric;
  if (std::find(names.begin(), names.end(), metric) == names.end()) {
    const std::vector<std::string> known(names.begin(), names.end());
    std::string list;
    for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
    const std::string nearest = nearest_word(metric, known);
    throw usage_error(metric.empty()
                          ? fmt::format("--picture heatmap needs --metric NAME ({})", list)
                          : fmt::format("--metric {}: no such metric{} ({})", metric,
                                        nearest.empty() ? "" : ", did you mean " + nearest + "?",
                                        list));
  }
  const auto heads = metrics_of_heads(map_tasks(job), job.run);
  if (heads.empty()) return;
  MetricTable table;
  table.names = head_names(job);
  table.values.assign(table.names.rows.size() * table.names.columns.size(),
                      std::numeric_limits<float>::quiet_NaN());
  const std::vector<size_t> places = head_places(job);
  auto values = OrderedJson::array();
  const HeadField& field = *find_head_field(metric);
  for (size_t i = 0; i < heads.size(); ++i) {
    const auto value = number_of(heads[i], field);
    if (value) table.values[places[i]] = static_cast<float>(*value);
    const OrderedJson number = value ? OrderedJson(*value) : OrderedJson();
    values.push_back({{"head", head_label(job.heads[i])}, {metric, number}});
    job.drawn[i][metric] = number;
  }
  table.text.title = page_title(job);
  table.text.lines = {joined_parts({capture_text(job), metric, "exact", domain_text(job, "all")})};
  table.value_name = metric;
  table.colours = job.colours;
  table.look = picture_look(job);
  job.facts["metric"] = metric;
  job.facts["values"] = std::move(values);
  write_picture(job, HeatTablePicture(table).draw());
}

}  // namespace attnscope
