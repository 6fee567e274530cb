#include "cli/render/render_maps.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
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

/// Bytes of a cell in a picture under way: two floats, and a sorted copy for the range.
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

/// Memory for the maps that a picture holds.
MemoryReservation reserve_maps(RenderJob& job, std::span<const HeadTask> tasks, int64_t block) {
  int64_t bytes = 0;
  for (const HeadTask& task : tasks) {
    bytes +=
        ceil_div(task.num_rows(), block) * ceil_div(task.keys.size(), block) * kComputedCellBytes;
  }
  return job.run.budget().reserve(bytes, "the picture");
}

/// A task's map without values.
PooledMap empty_map(const HeadTask& task, int64_t block) {
  PooledMap map;
  map.block_rows = map.block_cols = block;
  map.first_row = task.rows.begin;
  map.first_col = task.keys.begin;
  map.rows = ceil_div(task.num_rows(), block);
  map.cols = ceil_div(task.keys.size(), block);
  return map;
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

/// The cells of each map of a mosaic that were evicted, and says how many there are.
std::vector<std::vector<uint8_t>> find_evicted(RenderJob& job, std::span<const HeadTask> tasks,
                                               int64_t block, PictureText& text) {
  std::vector<std::vector<uint8_t>> missing(tasks.size());
  int64_t hatched = 0, cells = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    cells += ceil_div(tasks[i].num_rows(), block) * ceil_div(tasks[i].keys.size(), block);
    const auto evicted = evictions_of(*job.heads[i].call);
    if (evicted.empty()) continue;
    missing[i] = evicted_cells(evicted, tasks[i].rows, tasks[i].keys, block);
    hatched += std::count(missing[i].begin(), missing[i].end(), uint8_t{1});
    job.facts["evicted_cells"] = hatched;
  }
  if (hatched > 0) {
    text.lines.push_back(
        fmt::format("hatched: {} of {} cells were evicted from the cache", hatched, cells));
  }
  return missing;
}

/// Sets them to NaN: a mosaic hatches such cells.
void hatch(std::span<const uint8_t> missing, PooledMap& map) {
  for (size_t cell = 0; cell < missing.size(); ++cell) {
    if (missing[cell] == 0) continue;
    map.mean[cell] = map.max[cell] = std::numeric_limits<float>::quiet_NaN();
  }
}

std::string segment_name(int64_t segment) {
  return segment == SegmentMass::kText ? "text" : std::to_string(segment);
}

/// Masses as a map of single cells, so that a mosaic can show them; without values.
PooledMap mass_map(const HeadTask& task) {
  PooledMap map;
  map.rows = std::ssize(mass_segments(task.problem->query_tokens()));
  map.cols = std::ssize(mass_segments(task.problem->key_tokens()));
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

void draw_frame_table(RenderJob& job, const std::vector<HeadTask>& tasks) {
  const AttentionProblem& problem = *tasks.front().problem;
  MetricTable table;
  table.text.title = page_title(job);
  table.text.lines = {
      joined_parts({capture_text(job), head_label(job.heads.front())}),
      joined_parts(
          {"mass that the queries of a frame put on the keys of another, mean over queries",
           "exact", domain_text(job, "all")})};
  table.names = {"query", "key frame", {}, {}};
  for (const int64_t s : mass_segments(problem.query_tokens())) {
    table.names.rows.push_back(segment_name(s));
  }
  for (const int64_t s : mass_segments(problem.key_tokens())) {
    table.names.columns.push_back(segment_name(s));
  }
  table.value_name = "mass";
  table.colours = job.colours;
  table.look = picture_look(job);
  const HeatTablePicture picture(table);
  const auto memory = plan_page(job, {picture.width(), picture.height()});
  const auto masses = segment_masses(tasks, job.run);
  if (masses.empty()) return;
  table.values.assign(masses.front().mass.begin(), masses.front().mass.end());
  job.facts["mass"] = masses.front().mass;
  write_picture(job, picture.draw());
}

/// Gives each head's map, in their order, to `put`; false in a dry run.
using FillMaps = std::function<bool(const std::function<void(size_t head, PooledMap map)>& put)>;

/// A mosaic of these maps, which have no values before `fill` gives them.
void draw_mosaic(RenderJob& job, MosaicContent content, std::vector<PooledMap> maps,
                 const FillMaps& fill) {
  content.names = head_names(job);
  content.maps.resize(content.names.rows.size() * content.names.columns.size());
  const std::vector<size_t> places = head_places(job);
  for (size_t i = 0; i < maps.size(); ++i) content.maps[places[i]] = std::move(maps[i]);
  content.text.title = page_title(job);
  content.domain = domain_text(job, "all");
  content.colours = job.colours;
  content.alike = job.request.alike;
  content.look = picture_look(job);
  const MosaicPicture picture(content);
  const auto memory = plan_page(job, {picture.width(), picture.height()});
  const bool filled =
      fill([&](size_t head, PooledMap map) { content.maps[places[head]] = std::move(map); });
  if (filled) write_picture(job, picture.draw());
}

/// Throws Error(usage) where heads have no such number.
void check_metric(const std::string& metric) {
  const auto names = metric_names();
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
}

}  // namespace

void render_matrix(RenderJob& job) {
  require_one_head(job, "take --picture mosaic");
  const std::vector<HeadTask> tasks = map_tasks(job);
  const HeadTask& task = tasks.front();
  const PictureStyle look = picture_look(job);
  const int64_t block = chosen_block(job, tasks, cells_on_page(look, kMatrixCells));
  MatrixContent content;
  content.map = empty_map(task, block);
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
  const MemoryReservation held = reserve_maps(job, tasks, block);
  hatch_evicted(job, task, block, content);
  job.facts["block"] = block;
  job.facts["pool"] = job.request.pool;
  job.facts["cells"] = {content.map.rows, content.map.cols};
  const MatrixPicture picture(content);
  const auto memory = plan_page(job, {picture.width(), picture.height()});
  auto maps = pooled_maps(tasks, block, job.run);
  if (maps.empty()) return;
  content.map = std::move(maps.front());
  write_picture(job, picture.draw());
}

void render_mosaic(RenderJob& job) {
  const std::vector<HeadTask> tasks = map_tasks(job);
  const int64_t block = chosen_block(job, tasks, kMosaicCells);
  const MemoryReservation held = reserve_maps(job, tasks, block);
  std::vector<PooledMap> maps;
  for (const HeadTask& task : tasks) maps.push_back(empty_map(task, block));
  MosaicContent content;
  content.pool = parse_pool(job.request.pool).value();
  content.cell_text = pooling_text(maps.front(), content.pool);
  content.text.lines = {
      joined_parts({capture_text(job), "attention maps, queries down, keys to the right",
                    crop_text(tasks.front())})};
  const auto missing = find_evicted(job, tasks, block, content.text);
  job.facts["block"] = block;
  job.facts["pool"] = job.request.pool;
  draw_mosaic(job, std::move(content), std::move(maps), [&](const auto& put) {
    auto found = pooled_maps(tasks, block, job.run);
    for (size_t i = 0; i < found.size(); ++i) {
      hatch(missing[i], found[i]);
      put(i, std::move(found[i]));
    }
    return !found.empty();
  });
}

void render_frames(RenderJob& job) {
  require_frames(job);
  const std::vector<HeadTask> tasks = map_tasks(job);
  if (tasks.size() == 1) return draw_frame_table(job, tasks);
  std::vector<PooledMap> maps;
  for (const HeadTask& task : tasks) maps.push_back(mass_map(task));
  MosaicContent content;
  content.cell_text = "mass of key frames, mean over the queries of a frame";
  content.value_name = "mass";
  content.text.lines = {
      joined_parts({capture_text(job), "frame × frame, queries down, keys to the right"})};
  draw_mosaic(job, std::move(content), maps, [&](const auto& put) {
    const auto masses = segment_masses(tasks, job.run);
    for (size_t i = 0; i < masses.size(); ++i) {
      PooledMap map = maps[i];
      map.mean.assign(masses[i].mass.begin(), masses[i].mass.end());
      map.max = map.mean;
      put(i, std::move(map));
    }
    return !masses.empty();
  });
}

void render_heatmap(RenderJob& job) {
  const std::string& metric = job.request.metric;
  check_metric(metric);
  MetricTable table;
  table.names = head_names(job);
  table.text.title = page_title(job);
  table.text.lines = {joined_parts({capture_text(job), metric, "exact", domain_text(job, "all")})};
  table.value_name = metric;
  table.colours = job.colours;
  table.look = picture_look(job);
  const HeatTablePicture picture(table);
  const auto memory = plan_page(job, {picture.width(), picture.height()});
  const auto heads = metrics_of_heads(map_tasks(job), job.run);
  if (heads.empty()) return;
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
  job.facts["metric"] = metric;
  job.facts["values"] = std::move(values);
  write_picture(job, picture.draw());
}

}  // namespace attnscope
