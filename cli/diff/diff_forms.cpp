#include "cli/diff/diff_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/common/head_table.h"
#include "cli/diff/diff_pictures.h"
#include "cli/diff/diff_report.h"
#include "cli/run/run_steps.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/files/json_types.h"
#include "io/files/staged_file.h"

namespace attnscope {
namespace {

/// A picture's cells along a side at most.
constexpr int64_t kMostPictureCells = 4096;

bool is_hdf5(const DiffOptions& o) { return std::filesystem::path(o.out).extension() == ".h5"; }

/// The first token of each block.
std::vector<int32_t> block_starts(int64_t begin, int64_t end, int64_t block) {
  std::vector<int32_t> starts;
  for (int64_t i = begin; i < end; i += block) starts.push_back(static_cast<int32_t>(i));
  return starts;
}

class PooledForm final : public DiffForm {
 public:
  PooledForm(const DiffJob& job, int64_t block)
      : job_(job), block_(block), pool_(*parse_pool(job.options.pool)) {
    const ComparedPair& first = job.pairs.front();
    rows_ = {first.query_at(0), first.query_at(first.rows - 1) + 1};
    if (rows_.size() != first.rows) {
      throw usage_error(
          fmt::format("--product {}: {} and {} have {} rows in common, which are no "
                      "range of rows",
                      job.options.product, first.a.label, first.b.label, first.rows));
    }
    const int64_t longer = ceil_div(std::max(rows_.size(), first.keys.size()), block);
    if (!is_hdf5(job.options) && longer > kMostPictureCells) {
      throw usage_error(
          fmt::format("--product {}: makes {} cells, more than the {} of a picture; "
                      "take blocks of at least {}",
                      job.options.product, longer, kMostPictureCells,
                      ceil_div(longer * block, kMostPictureCells)));
    }
    page_ = is_hdf5(job.options) ? std::nullopt : std::optional(make_picture().page());
  }

  std::optional<PageSize> page() const override { return page_; }

  std::unique_ptr<PairSink> make_sink(const ComparedPair&) const override {
    return std::make_unique<PooledDifference>(block_);
  }

  void run(const DiffRunning& running) const override {
    if (is_hdf5(job_.options)) {
      write_file(running);
    } else {
      draw(running);
    }
    OrderedJson json = maps_json(job_);
    json["block"] = block_;
    report_maps(job_, running.console, json);
  }

 private:
  void write_file(const DiffRunning& running) const {
    PairMapsLayout layout = maps_layout(job_);
    layout.numbers.emplace_back("block", block_);
    layout.axes = {
        {"query_block", "first query of a block", block_starts(rows_.begin, rows_.end, block_)},
        {"key_block", "first key of a block",
         block_starts(job_.pairs.front().keys.begin, job_.pairs.front().keys.end, block_)}};
    layout.variables = {{"difference_max",
                         "difference A - B of the largest size in a block, with its sign",
                         {0, 1}},
                        {"difference_mean",
                         "mean difference A - B of a block over the entries that both have",
                         {0, 1}}};
    StagedFile file(job_.options.out, job_.options.force);
    PairMapsFile maps(layout, file.part_path());
    running.stream(job_.pairs, [&](size_t pair, PairSink& sink) {
      const PooledMap map = dynamic_cast<PooledDifference&>(sink).take();
      maps.write(0, static_cast<int64_t>(pair), map.max);
      maps.write(1, static_cast<int64_t>(pair), map.mean);
    });
    maps.close();
    running.before_end();
    file.commit();
  }

  DifferencePicture make_picture() const {
    const ComparedPair& first = job_.pairs.front();
    PooledMap map;
    map.block_rows = map.block_cols = block_;
    map.first_row = rows_.begin;
    map.first_col = first.keys.begin;
    map.rows = ceil_div(rows_.size(), block_);
    map.cols = ceil_div(first.keys.size(), block_);
    return {{job_.sides, job_.pairs, std::vector(job_.pairs.size(), map), "", pool_,
             map_scale(job_.options, ScaleKind::symlog)},
            picture_target(job_.options)};
  }

  void draw(const DiffRunning& running) const {
    const int64_t rows = ceil_div(rows_.size(), block_);
    const int64_t cols = ceil_div(job_.pairs.front().keys.size(), block_);
    // Maxima and means, and their copies for the colours.
    const auto held =
        running.runner.budget().reserve(std::ssize(job_.pairs) * rows * cols * 24, "the maps");
    std::vector<PooledMap> maps(job_.pairs.size());
    running.stream(job_.pairs, [&](size_t pair, PairSink& sink) {
      maps[pair] = dynamic_cast<PooledDifference&>(sink).take();
    });
    running.before_end();
    make_picture().write(std::move(maps));
  }

  const DiffJob job_;
  const int64_t block_;
  const Pool pool_;
  IndexRange rows_;
  std::optional<PageSize> page_;
};

OrderedJson matrix_json(const std::vector<double>& values, size_t columns) {
  OrderedJson rows = OrderedJson::array();
  for (size_t first = 0; first < values.size(); first += columns) {
    OrderedJson row = OrderedJson::array();
    for (size_t i = first; i < first + columns; ++i) {
      row.push_back(std::isfinite(values[i]) ? OrderedJson(values[i]) : OrderedJson());
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

PairAxis part_axis(const char* name, const char* long_name,
                   const std::vector<SequencePart>& parts) {
  PairAxis axis{name, long_name, {}, {}};
  for (const SequencePart& part : parts) {
    axis.numbers.push_back(static_cast<int32_t>(axis.numbers.size()));
    axis.words.push_back(part.name);
  }
  return axis;
}

void print_parts(const ComparedPair& pair, const PartDifference& found) {
  fmt::print("A  {}\nB  {}\n   mass of key parts, A - B (and of |A - B|), mean over the queries\n",
             head_label(pair.a.name), head_label(pair.b.name));
  fmt::print("   {:>12}", "query");
  for (const SequencePart& part : found.key_parts) fmt::print(" {:>18}", one_line(part.name));
  size_t at = 0;
  for (const SequencePart& part : found.query_parts) {
    fmt::print("\n   {:>12}", one_line(part.name));
    for (size_t k = 0; k < found.key_parts.size(); ++k, ++at) {
      fmt::print(" {:>+9.4f} ({:>.4f})", found.difference[at], found.absolute[at]);
    }
  }
  fmt::print("\n");
}

class FrameForm final : public DiffForm {
 public:
  explicit FrameForm(const DiffJob& job)
      : job_(job),
        query_parts_(sequence_frames(*job.pairs.front().a.query_tokens)),
        key_parts_(sequence_frames(*job.pairs.front().a.key_tokens)) {
    for (const ComparedPair& pair : job.pairs) {
      if (pair.logits) throw usage_error("--product frames: logits have no mass");
      if (!pair.has_all()) {
        throw usage_error(
            fmt::format("--product frames needs all rows and keys: {} and {} have a "
                        "part of them",
                        pair.a.label, pair.b.label));
      }
    }
    if (!job.pairs.front().a.query_tokens->has_grid() &&
        !job.pairs.front().a.key_tokens->has_grid()) {
      throw usage_error(fmt::format("--product frames: {} has no token grid; give --grid TxHxW",
                                    job.pairs.front().a.label));
    }
    if (is_drawn()) page_ = make_picture().page();
  }

  std::optional<PageSize> page() const override { return page_; }

  std::unique_ptr<PairSink> make_sink(const ComparedPair&) const override {
    return std::make_unique<PartSums>(query_parts_, key_parts_);
  }

  void run(const DiffRunning& running) const override {
    std::vector<PartDifference> found(job_.pairs.size());
    running.stream(job_.pairs, [&](size_t pair, PairSink& sink) {
      found[pair] = dynamic_cast<const PartSums&>(sink).take();
    });
    running.before_end();
    const DiffOptions& o = job_.options;
    if (!o.out.empty() && is_hdf5(o)) {
      write_file(found);
    } else if (is_drawn()) {
      make_picture().write(maps_of(found));
    }
    report(found, running.console);
  }

 private:
  bool is_drawn() const { return !job_.options.out.empty() && !is_hdf5(job_.options); }

  DifferencePicture make_picture() const {
    PooledMap map;
    map.rows = std::ssize(query_parts_);
    map.cols = std::ssize(key_parts_);
    return {
        {job_.sides, job_.pairs, std::vector(job_.pairs.size(), map),
         "mass of key frames in A − in B, mean over the queries of a frame", Pool::mean,
         map_scale(job_.options, ScaleKind::linear), names_of(query_parts_), names_of(key_parts_)},
        picture_target(job_.options)};
  }

  static std::vector<std::string> names_of(const std::vector<SequencePart>& parts) {
    std::vector<std::string> names;
    for (const SequencePart& part : parts) names.push_back(part.name);
    return names;
  }

  static std::vector<PooledMap> maps_of(const std::vector<PartDifference>& found) {
    std::vector<PooledMap> maps;
    for (const PartDifference& each : found) {
      PooledMap map;
      map.rows = std::ssize(each.query_parts);
      map.cols = std::ssize(each.key_parts);
      map.mean.assign(each.difference.begin(), each.difference.end());
      map.max = map.mean;
      maps.push_back(std::move(map));
    }
    return maps;
  }

  void write_file(const std::vector<PartDifference>& found) const {
    PairMapsLayout layout = maps_layout(job_);
    layout.axes = {part_axis("query_part", "frame or other part of the queries", query_parts_),
                   part_axis("key_part", "frame or other part of the keys", key_parts_)};
    layout.variables = {
        {"difference", "mean over a part's queries of the sum of A - B over a part's keys", {0, 1}},
        {"abs_difference",
         "mean over a part's queries of the sum of |A - B| over a part's keys",
         {0, 1}},
        {"rows", "queries of the part that have weight in both maps", {0}}};
    StagedFile file(job_.options.out, job_.options.force);
    PairMapsFile maps(layout, file.part_path());
    for (size_t i = 0; i < found.size(); ++i) {
      const PartDifference& each = found[i];
      const auto pair = static_cast<int64_t>(i);
      maps.write(0, pair, std::vector<float>(each.difference.begin(), each.difference.end()));
      maps.write(1, pair, std::vector<float>(each.absolute.begin(), each.absolute.end()));
      maps.write(2, pair, std::vector<float>(each.rows.begin(), each.rows.end()));
    }
    maps.close();
    file.commit();
  }

  void report(const std::vector<PartDifference>& found, const Console& console) const {
    OrderedJson json = maps_json(job_);
    json["query_parts"] = names_of(query_parts_);
    json["key_parts"] = names_of(key_parts_);
    for (size_t i = 0; i < found.size(); ++i) {
      json["pairs"][i]["rows"] = found[i].rows;
      json["pairs"][i]["difference"] = matrix_json(found[i].difference, key_parts_.size());
      json["pairs"][i]["abs_difference"] = matrix_json(found[i].absolute, key_parts_.size());
    }
    if (job_.options.out.empty() && !job_.options.json) {
      for (size_t i = 0; i < found.size(); ++i) print_parts(job_.pairs[i], found[i]);
    }
    report_maps(job_, console, json);
  }

  const DiffJob job_;
  const std::vector<SequencePart> query_parts_, key_parts_;
  std::optional<PageSize> page_;
};

}  // namespace

OrderedJson maps_json(const DiffJob& job) {
  OrderedJson json{{"format", "attnscope-diff-maps/1"},
                   {"a", job.sides.a.path().filename().string()},
                   {"b", job.sides.b.path().filename().string()},
                   {"product", job.options.product}};
  if (!job.options.out.empty()) json["file"] = job.options.out;
  OrderedJson& pairs = json["pairs"] = OrderedJson::array();
  for (const ComparedPair& pair : job.pairs) {
    OrderedJson each = heads_of_pair_json(pair.a.name, pair.b.name);
    if (pair.of_exports()) {
      each["stored_a"] = pair.a.dtype.empty() ? OrderedJson() : OrderedJson(pair.a.dtype);
      each["stored_b"] = pair.b.dtype.empty() ? OrderedJson() : OrderedJson(pair.b.dtype);
    }
    pairs.push_back(std::move(each));
  }
  return json;
}

PairMapsLayout maps_layout(const DiffJob& job) {
  const OrderedJson json = maps_json(job);
  PairMapsLayout layout;
  for (const char* const name : {"format", "product", "a", "b"}) {
    layout.texts.emplace_back(name, json[name].get<std::string>());
  }
  layout.texts.emplace_back("Conventions", "CF-1.8");
  layout.pairs = pair_columns(json["pairs"]);
  return layout;
}

PictureTarget picture_target(const DiffOptions& options) {
  return {options.out, options.force, style_of(options.page, options.out)};
}

ScaleKind map_scale(const DiffOptions& options, ScaleKind usual) {
  return options.colour_scale.empty() ? usual : *parse_scale_kind(options.colour_scale);
}

void report_maps(const DiffJob& job, const Console& console, const OrderedJson& json) {
  if (!job.options.out.empty()) {
    console.say(fmt::format("wrote {} ({} of {} pairs of heads)", job.options.out,
                            job.options.product, job.pairs.size()));
  }
  print_result(
      job.options.json, true, [&] { return json; }, [] {});
}

std::unique_ptr<const DiffForm> make_pooled_form(const DiffJob& job, int64_t block) {
  return std::make_unique<const PooledForm>(job, block);
}

std::unique_ptr<const DiffForm> make_frame_form(const DiffJob& job) {
  return std::make_unique<const FrameForm>(job);
}

}  // namespace attnscope
