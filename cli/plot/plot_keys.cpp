#include "cli/plot/plot_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "cli/common/shell_words.h"
#include "cli/common/stored_input.h"
#include "cli/plot/plot_table.h"
#include "cli/plot/plot_words.h"
#include "core/base/error.h"
#include "core/heads/head_record_sink.h"
#include "core/problem/key_segments.h"
#include "core/products/tokens/part_names.h"
#include "io/metrics/read_table.h"
#include "io/metrics/table_arrays.h"

namespace attnscope {
namespace {

/// Keys that are drawn at most, else runs of them.
constexpr int64_t kMostPoints = 1024;
/// Masses are summed in this unit, so that sums do not depend on the order of the heads: a mean
/// over at most 2¹⁶ heads fits 64 bits.
constexpr double kMassUnit = 0x1p-46;

/// Sums over heads of the mass of each key.
struct KeyMasses {
  std::vector<int64_t> sums;
  int64_t heads = 0;

  /// False where the head has no row that counts.
  bool add(const std::vector<double>& masses) {
    if (std::any_of(masses.begin(), masses.end(), [](double m) { return !std::isfinite(m); })) {
      return false;
    }
    sums.resize(masses.size());
    for (size_t i = 0; i < masses.size(); ++i) sums[i] += std::llround(masses[i] / kMassUnit);
    ++heads;
    return true;
  }
  double mean(size_t key) const {
    return static_cast<double>(sums[key]) * kMassUnit / static_cast<double>(heads);
  }
};

/// The calls whose keys are as many as those of the most heads, the first of equal ones.
std::vector<SelectedCall> alike_calls(const std::vector<SelectedCall>& calls) {
  std::map<int64_t, size_t> heads;
  for (const SelectedCall& call : calls) {
    heads[call.call->problem->num_keys()] += call.batch.size() * call.heads.size();
  }
  const auto most = std::max_element(
      heads.begin(), heads.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<SelectedCall> alike;
  for (const SelectedCall& call : calls) {
    if (call.call->problem->num_keys() == most->first) alike.push_back(call);
  }
  return alike;
}

size_t count_heads(const std::vector<SelectedCall>& calls) {
  size_t heads = 0;
  for (const SelectedCall& call : calls) heads += call.batch.size() * call.heads.size();
  return heads;
}

/// Where text, frames and other segments begin.
std::vector<ChartMark> marks_of(const TokenGrid& tokens) {
  std::vector<ChartMark> marks;
  const KeySegments segments(tokens, 0);
  const std::vector<std::string> names = part_names(tokens);
  const auto parts = text_and_frames(tokens);
  for (const KeySegments::Span& span : segments.spans()) {
    const int64_t group = group_at(tokens, span.keys.begin);
    for (size_t part = 0; part < parts.size(); ++part) {
      if (std::find(parts[part].begin(), parts[part].end(), group) == parts[part].end()) continue;
      const double at = static_cast<double>(span.keys.begin);
      if (segments.is_padding(span.segment)) {
        marks.push_back({at, "padding"});
      } else if (marks.empty() || marks.back().text != names[part]) {
        marks.push_back({at, names[part]});
      }
    }
  }
  return marks;
}

/// Runs of `run` keys: the largest mean mass in each, at its middle.
ChartSeries series_of(const KeyMasses& masses, int64_t run, OrderedJson layer,
                      const std::string& name, PlotNumbers& numbers) {
  ChartSeries series;
  const auto keys = static_cast<int64_t>(masses.sums.size());
  for (int64_t begin = 0; begin < keys; begin += run) {
    const int64_t end = std::min(keys, begin + run);
    double most = 0;
    for (int64_t key = begin; key < end; ++key) {
      most = std::max(most, masses.mean(static_cast<size_t>(key)));
    }
    // A log axis has no place for a key that nothing looks at.
    series.points.push_back({static_cast<double>(begin + end - 1) / 2, most});
    numbers.rows.push_back({layer, name, masses.heads, begin, end, most});
  }
  return series;
}

/// The masses that are found, head by head.
class KeyProfile {
 public:
  /// `names`: records of which the names alone count.
  explicit KeyProfile(std::vector<HeadRecord> names) : names_(std::move(names)) {
    layers_ = heads_by_layer(names_);
    masses_.resize(layers_.size());
    for (size_t layer = 0; layer < layers_.size(); ++layer) {
      for (const size_t place : layers_[layer].heads) {
        places_[names_[place].name] = {layer, place};
      }
    }
  }

  /// A record with the array column_mass, in any order.
  void take(const HeadRecord& record) {
    const auto [layer, place] = places_.at(record.name);
    if (masses_[layer].add(record.arrays.front().values)) drawn_.push_back(place);
  }

  const std::vector<HeadRecord>& names() const { return names_; }
  const std::vector<LayerHeads>& layers() const { return layers_; }
  const std::vector<KeyMasses>& masses() const { return masses_; }  ///< [layers]
  int64_t keys() const {
    size_t most = 0;
    for (const KeyMasses& masses : masses_) most = std::max(most, masses.sums.size());
    return static_cast<int64_t>(most);
  }
  /// Places of the heads that have a row that counts, ascending.
  std::vector<size_t> drawn() const {
    std::vector<size_t> places = drawn_;
    std::sort(places.begin(), places.end());
    return places;
  }

 private:
  std::vector<HeadRecord> names_;
  std::vector<LayerHeads> layers_;
  std::map<HeadName, std::pair<size_t, size_t>> places_;  ///< layer, place among the names
  std::vector<KeyMasses> masses_;
  std::vector<size_t> drawn_;
};

/// Everything but the text and the notes. `tokens`: of the keys; null: not known.
Plot plot_of_profile(const KeyProfile& profile, const TokenGrid* tokens) {
  const int64_t keys = profile.keys();
  const int64_t run = (keys + kMostPoints - 1) / kMostPoints;
  Plot plot;
  plot.numbers.columns = {"layer", "name", "heads", "first_key", "end_key", "mass"};
  std::vector<std::string> names;
  std::vector<size_t> which;
  for (size_t i = 0; i < profile.layers().size(); ++i) {
    const LayerHeads& layer = profile.layers()[i];
    if (profile.masses()[i].heads == 0) continue;
    plot.chart.series.push_back(
        series_of(profile.masses()[i], run, layer_value(layer), layer.name, plot.numbers));
    which.push_back(names.size());
    names.push_back(profile.layers().size() > kMostNamedSeries ? layer_number(layer) : layer.name);
  }
  name_series(plot.chart, names, which, "layer");
  if (tokens != nullptr) plot.chart.marks = marks_of(*tokens);
  plot.chart.x.title = "key, by its place in the sequence";
  plot.chart.x.range = ValueRange{0, static_cast<double>(keys)};
  plot.chart.y = {run > 1 ? fmt::format("mass of the heaviest of each {} keys, mean over rows", run)
                          : "mass of a key, mean over rows",
                  true,
                  true,
                  {},
                  {}};
  return plot;
}

/// The plot of masses that were found; `others`: heads with other numbers of keys.
Plot finished_plot(const KeyProfile& profile, const TokenGrid* tokens, PlotHeads heads,
                   size_t others) {
  const std::vector<size_t> drawn = profile.drawn();
  if (drawn.empty()) throw usage_error("--what keys: all rows of all heads are masked");
  Plot plot = plot_of_profile(profile, tokens);
  plot.heads = drawn.size();
  if (others > 0) {
    plot.notes.push_back(
        left_out_heads(others, fmt::format("that have other than {} keys", profile.keys())));
  }
  if (const size_t masked = profile.names().size() - drawn.size(); masked > 0) {
    plot.notes.push_back(left_out_heads(masked, "whose rows are all masked"));
  }
  heads.records = profile.names();
  plot.chart.text =
      plot_text(heads, plot, "mass that each key gets, mean over a layer's heads", drawn);
  return plot;
}

/// The records whose arrays are as long as those of the most, the first of equal ones.
std::vector<HeadRecord> alike_records(std::vector<HeadRecord> records) {
  std::map<size_t, size_t> heads;
  for (const HeadRecord& record : records) ++heads[record.arrays.front().values.size()];
  const auto most = std::max_element(
      heads.begin(), heads.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::erase_if(records, [&](const HeadRecord& record) {
    return record.arrays.front().values.size() != most->first;
  });
  return records;
}

}  // namespace

std::optional<Plot> plot_keys(const PlotWork& work) {
  const std::vector<SelectedCall> calls = alike_calls(work.calls);
  StatsChoice choice = work.request.choice();
  choice.arrays = {HeadArray::column_mass};
  const StatsJobs jobs = make_stats_jobs(choice, calls);
  const TokenGrid& tokens = calls.front().call->problem->key_tokens();
  std::vector<HeadRecord> names;
  for (const ReductionJob& job : jobs.jobs) {
    names.push_back({head_name(job.task.problem->id(), job.task.batch, job.task.head), {}, {}});
  }
  KeyProfile profile(std::move(names));
  const MemoryReservation held =
      work.run.budget().reserve((std::ssize(profile.layers()) + work.run.workers()) *
                                    tokens.tokens() * static_cast<int64_t>(sizeof(int64_t)),
                                "the masses of the keys");
  HeadRecordSink sink(jobs.jobs, {choice.arrays, choice.thresholds, jobs.tokens},
                      [&](const HeadRecord& record) { profile.take(record); });
  work.run.reduce(jobs.jobs, sink);
  if (work.run.is_plan_only()) return std::nullopt;
  PlotHeads heads;
  heads.title = work.title;
  heads.how = plot_rows_words(work.request);
  return finished_plot(profile, &tokens, std::move(heads),
                       count_heads(work.calls) - count_heads(calls));
}

Plot plot_keys_of_table(PlotRequest o, const Console& console, MemoryBudget& budget,
                        MemoryReservation& held) {
  refuse_computing_plot(o);
  const std::string& path = o.capture.capture;
  std::vector<HeadRecord> all = read_table_arrays(path, HeadArray::column_mass, budget, held);
  if (all.empty()) {
    throw usage_error(fmt::format(
        "--what keys: {} holds no masses of keys: attnscope stats CAPTURE --with column_mass "
        "-o FILE.json (or .h5) writes them",
        one_line(path)));
  }
  if (asks_for_numbers(o.selection)) {
    MemoryReservation numbers;
    settle_where_of_table(o.selection, read_number_table(path, budget, numbers));
  }
  std::vector<HeadName> names;
  for (const HeadRecord& record : all) names.push_back(record.name);
  std::vector<HeadRecord> chosen;
  for (const size_t i : select_stored(names, o.selection, console)) {
    chosen.push_back(std::move(all[i]));
  }
  const size_t selected = chosen.size();
  const std::vector<HeadRecord> alike = alike_records(std::move(chosen));
  std::vector<HeadRecord> alike_names;
  for (const HeadRecord& record : alike) alike_names.push_back({record.name, {}, {}});
  KeyProfile profile(std::move(alike_names));
  for (const HeadRecord& record : alike) profile.take(record);
  PlotHeads heads;
  heads.is_table = true;
  heads.title = file_name(path);
  Plot plot = finished_plot(profile, nullptr, std::move(heads), selected - alike.size());
  plot.notes.emplace_back("a table does not tell where text and frames begin");
  return plot;
}

}  // namespace attnscope
