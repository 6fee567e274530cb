#include "cli/diff/diff_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/common/head_table.h"
#include "cli/common/query_options.h"
#include "cli/diff/diff_pictures.h"
#include "core/base/error.h"
#include "core/products/query_volumes.h"
#include "core/products/tokens/chosen_tokens.h"
#include "io/files/json_types.h"
#include "io/files/staged_file.h"
#include "io/pictures/joined_parts.h"
#include "io/results/film_files.h"
#include "io/results/volume_files.h"

namespace attnscope {
namespace {

std::vector<int32_t> counted(int64_t extent) {
  std::vector<int32_t> numbers(static_cast<size_t>(extent));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// The queries of a pair whose mean difference is taken.
ChosenTokens choose_queries(const QueryOptions& options, const ComparedPair& pair) {
  const TokenGrid& tokens = *pair.a.query_tokens;
  if (options.any()) return resolve_tokens(options, {tokens, pair.a.words, pair.a.label});
  ChosenTokens chosen;
  for (int64_t i = tokens.video_range().begin; i < tokens.video_range().end; ++i) {
    chosen.tokens.push_back(i);
  }
  if (chosen.tokens.empty()) {
    throw usage_error(
        fmt::format("--product volume: the queries of {} are no video; choose some "
                    "with --query, --index or --text-token",
                    pair.a.label));
  }
  chosen.items = std::ssize(chosen.tokens);
  return chosen;
}

/// Cuts the pair to the queries. Throws Error(usage) where one is not there.
void cut_to(const QueryList& list, ComparedPair& pair) {
  const std::span<const int64_t> there = pair.cut_a.queries();
  for (const int64_t query : *list) {
    if (there.empty() || std::binary_search(there.begin(), there.end(), query)) continue;
    throw usage_error(
        fmt::format("--product volume: {} and {} do not both have the row of query {}",
                    pair.a.label, pair.b.label, query));
  }
  if (!pair.whole) {
    throw usage_error(
        fmt::format("--product volume needs whole rows: {} and {} have a part of the "
                    "keys",
                    pair.a.label, pair.b.label));
  }
  if (pair.logits) throw usage_error("--product volume: logits have no volume of weights");
  pair.cut_a.list = pair.cut_b.list = list;
  pair.rows = std::ssize(*list);
}

class VolumeForm final : public DiffForm {
 public:
  VolumeForm(const DiffJob& job, std::vector<ComparedPair>& pairs) : job_(job) {
    const DiffOptions& o = job.options;
    const TokenGrid& keys = *pairs.front().a.key_tokens;
    if (!keys.has_grid()) {
      throw usage_error(
          fmt::format("--product volume: the keys of {} have no token grid; give "
                      "--grid TxHxW",
                      pairs.front().a.label));
    }
    volumes_.grid = {keys.frames(), keys.height(), keys.width()};
    QueryList list;
    for (ComparedPair& pair : pairs) {
      const ChosenTokens chosen = choose_queries(o.queries, pair);
      list = shared_list(chosen.tokens, list);
      cut_to(list, pair);
      volumes_.query_text = o.queries.any() ? describe_chosen(o.queries, chosen, false)
                                            : "mean of the video's queries";
      describe(pair, chosen);
    }
    volumes_.model = "A − B";
    volumes_.capture = joined_parts({"A: " + job.sides.a.path().filename().string(),
                                     "B: " + job.sides.b.path().filename().string()});
    volumes_.domain = "all";
    if (is_animation_name(o.out)) {
      page_ = check_animation(o.out, volumes_, style({}));
    } else if (is_drawn()) {
      page_ = check_filmstrip(o.out, volumes_, style({}));
    }
  }

  std::unique_ptr<PairSink> make_sink(const ComparedPair&) const override {
    return std::make_unique<MeanDifference>();
  }

  std::optional<PageSize> page() const override { return page_; }

  void run(const DiffRunning& running) const override {
    const ComparedPair& first = job_.pairs.front();
    const TokenGrid& keys = *first.a.key_tokens;
    tell_mixed_tokens(volumes_.chosen_of(volumes_.volumes.front()), *first.a.query_tokens,
                      running.console);
    if (page_) tell_large_film(job_.options.out, *page_, style({}), running.console);
    const auto held = running.runner.budget().reserve(
        std::ssize(job_.pairs) * keys.tokens() * static_cast<int64_t>(2 * sizeof(float)),
        "the volumes");
    QueryVolumes volumes = volumes_;
    std::vector<int64_t> rows;
    running.stream(job_.pairs, [&](size_t pair, PairSink& sink) {
      const auto& mean = dynamic_cast<const MeanDifference&>(sink);
      rows.push_back(mean.counted());
      set_values(volumes.volumes[pair], keys, mean.take());
    });
    running.before_end();
    write(volumes, rows);
    OrderedJson json = maps_json(job_);
    json["query"] = volumes.query_text;
    for (size_t i = 0; i < rows.size(); ++i) {
      json["pairs"][i]["rows"] = rows[i];
      if (job_.options.queries.any()) {
        json["pairs"][i]["tokens"] = volumes.chosen_of(volumes.volumes[i]);
      }
    }
    report_maps(job_, running.console, json);
  }

 private:
  std::string extension() const {
    return std::filesystem::path(job_.options.out).extension().string();
  }

  bool is_drawn() const { return extension() != ".npy" && extension() != ".h5"; }

  void describe(const ComparedPair& pair, const ChosenTokens& chosen) {
    QueryVolume volume;
    volume.chosen = volumes_.list_chosen(chosen.tokens);
    volume.label = fmt::format("{} − {}", head_label(pair.a.name), head_label(pair.b.name));
    if (job_.options.queries.any() && pair.a.query_tokens->same_places(*pair.a.key_tokens)) {
      volume.query = single_coord(chosen, *pair.a.key_tokens);
    }
    volumes_.volumes.push_back(std::move(volume));
  }

  FilmStyle style(std::span<const float> values) const {
    FilmStyle style = film_style_of(job_.options.page, job_.options.out, volumes_.grid[0]);
    style.colours = difference_colours(values, map_scale(job_.options, ScaleKind::symlog));
    style.unit = "A − B";
    style.about = "exact, one range for all";
    return style;
  }

  void write(const QueryVolumes& volumes, const std::vector<int64_t>& rows) const {
    const DiffOptions& o = job_.options;
    std::vector<float> values;
    for (const QueryVolume& volume : volumes.volumes) {
      values.insert(values.end(), volume.video.begin(), volume.video.end());
    }
    if (extension() == ".npy") return write_volumes_npy(volumes, o.out, o.force);
    if (is_animation_name(o.out)) return write_animation(volumes, style(values), o.out, o.force);
    if (is_drawn()) return write_filmstrip(volumes, style(values), o.out, o.force);
    write_file(volumes, rows);
  }

  void write_file(const QueryVolumes& volumes, const std::vector<int64_t>& rows) const {
    PairMapsLayout layout = maps_layout(job_);
    layout.texts.emplace_back("query", volumes.query_text);
    layout.axes = {{"t", "latent frame", counted(volumes.grid[0])},
                   {"y", "latent row", counted(volumes.grid[1])},
                   {"x", "latent column", counted(volumes.grid[2])}};
    layout.variables = {{"volume", "difference A - B of the weights of the video keys", {0, 1, 2}},
                        {"rows", "queries that the mean is over", {}}};
    const QueryVolume& first = volumes.volumes.front();
    const auto add_run = [&](const std::string& variable, const std::string& axis, size_t length) {
      layout.axes.push_back(
          {axis, "place within the segment", counted(static_cast<int64_t>(length))});
      layout.variables.push_back({variable,
                                  "difference A - B of the weights of the segment's keys",
                                  {layout.axes.size() - 1}});
    };
    if (!first.text.empty()) add_run("text", "text_index", first.text.size());
    for (const SegmentValues& other : first.others) {
      add_run("segment_" + other.name, other.name + "_index", other.values.size());
    }
    StagedFile file(job_.options.out, job_.options.force);
    PairMapsFile maps(layout, file.part_path());
    for (size_t i = 0; i < rows.size(); ++i) {
      const QueryVolume& volume = volumes.volumes[i];
      const auto pair = static_cast<int64_t>(i);
      size_t variable = 0;
      maps.write(variable++, pair, volume.video);
      maps.write(variable++, pair, std::vector<float>{static_cast<float>(rows[i])});
      if (!volume.text.empty()) maps.write(variable++, pair, volume.text);
      for (const SegmentValues& other : volume.others) maps.write(variable++, pair, other.values);
    }
    maps.close();
    file.commit();
  }

  const DiffJob job_;
  QueryVolumes volumes_;  ///< without their values
  std::optional<PageSize> page_;
};

}  // namespace

std::unique_ptr<const DiffForm> make_volume_form(const DiffJob& job,
                                                 std::vector<ComparedPair>& pairs) {
  return std::make_unique<const VolumeForm>(job, pairs);
}

}  // namespace attnscope
