#include "cli/plot/plot_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "cli/common/shell_words.h"
#include "cli/common/stored_input.h"
#include "cli/plot/plot_table.h"
#include "cli/plot/plot_words.h"
#include "core/base/error.h"
#include "core/base/mass_range.h"
#include "core/base/number_words.h"
#include "core/heads/head_record_sink.h"
#include "core/problem/key_segments.h"
#include "core/products/tokens/part_names.h"
#include "io/metrics/read_table.h"
#include "io/metrics/table_arrays.h"
#include "io/metrics/table_heads.h"

namespace attnscope {
namespace {

/// Keys that are drawn at most, else runs of them.
constexpr int64_t kMostPoints = 1024;
/// Masses are summed in whole numbers of this unit and, what is left, of its square, so that sums
/// do not depend on the order of the heads: those of 2¹⁶ heads fit 64 bits.
constexpr double kMassUnit = 0x1p-46;
/// What rounding may add to a mass of 1.
constexpr double kMassRounding = 1e-6;

constexpr const char* kNoMasses =
    "--what keys: no head has masses of keys that are shares of a row: scores that are not "
    "normalised, or all rows masked";

/// Sums over heads of the mass of each key.
struct LayerMasses {
  struct Sum {
    int64_t units = 0, rest = 0;
  };
  std::vector<Sum> sums;
  int64_t heads = 0;

  /// False where the head has no row that counts.
  bool add(const std::vector<double>& masses) {
    if (std::any_of(masses.begin(), masses.end(), [](double m) { return !std::isfinite(m); })) {
      return false;
    }
    sums.resize(masses.size());
    for (size_t i = 0; i < masses.size(); ++i) {
      const double units = masses[i] / kMassUnit, whole = std::floor(units);
      sums[i].units += static_cast<int64_t>(whole);
      sums[i].rest += std::llround((units - whole) / kMassUnit);
    }
    ++heads;
    return true;
  }
  double mean(size_t key) const {
    const double rest = static_cast<double>(sums[key].rest) * kMassUnit;
    return (static_cast<double>(sums[key].units) + rest) * kMassUnit / static_cast<double>(heads);
  }
};

/// The calls whose weights are shares of a row.
std::vector<SelectedCall> calls_with_shares(const std::vector<SelectedCall>& calls) {
  std::vector<SelectedCall> found;
  for (const SelectedCall& call : calls) {
    if (is_normalised(call.call->problem->score())) found.push_back(call);
  }
  return found;
}

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

/// Where text, frames and other segments begin; nothing where all is one part.
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
  if (marks.size() == 1) marks.clear();
  return marks;
}

/// Runs of `run` keys: the largest mean mass in each, at its middle.
ChartSeries series_of(const LayerMasses& masses, int64_t run, OrderedJson layer,
                      const std::string& name, PlotNumbers& numbers) {
  ChartSeries series;
  const auto keys = static_cast<int64_t>(masses.sums.size());
  for (int64_t begin = 0; begin < keys; begin += run) {
    const int64_t end = std::min(keys, begin + run);
    double most = 0;
    for (int64_t key = begin; key < end; ++key) {
      most = std::max(most, masses.mean(static_cast<size_t>(key)));
    }
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
  const std::vector<LayerMasses>& masses() const { return masses_; }  ///< [layers]
  int64_t keys() const {
    size_t most = 0;
    for (const LayerMasses& masses : masses_) most = std::max(most, masses.sums.size());
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
  std::vector<LayerMasses> masses_;
  std::vector<size_t> drawn_;
};

/// Gives the y axis its range, which ends where nearly all mass lies, so that a few very light keys
/// do not stretch it; puts the lighter ones on the axis, and says so.
void end_mass_axis(Plot& plot) {
  std::vector<double> masses;
  double total = 0;
  for (const ChartSeries& series : plot.chart.series) {
    for (const ChartPoint& point : series.points) masses.push_back(point.y);
  }
  std::sort(masses.begin(), masses.end());
  for (const double mass : masses) total += mass;
  if (!(total > 0)) throw usage_error("--what keys: no key has mass");
  constexpr double kRoom = 1.25;
  const double low = mass_covering_end(
                         masses.size(),
                         [&](size_t i) {
                           return ValueMass{masses[i], masses[i]};
                         },
                         total) /
                     kRoom;
  plot.chart.y.range = ValueRange{low, masses.back() * kRoom};
  if (masses.front() >= low) return;
  plot.notes.push_back(fmt::format("keys of less mass than {} lie on the axis", share_words(low)));
  for (ChartSeries& series : plot.chart.series) {
    for (ChartPoint& point : series.points) point.y = std::max(point.y, low);
  }
}

/// Everything but the text and the notes of heads. `tokens`: of the keys; null: not known.
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
  end_mass_axis(plot);
  return plot;
}

/// Heads that are not drawn.
struct LeftOut {
  size_t shares = 0;  ///< whose weights are no shares of a row
  size_t keys = 0;    ///< with other numbers of keys
};

/// The plot of masses that were found.
Plot finished_plot(const KeyProfile& profile, const TokenGrid* tokens, PlotHeads heads,
                   const LeftOut& others) {
  const std::vector<size_t> drawn = profile.drawn();
  if (drawn.empty()) throw usage_error(kNoMasses);
  Plot plot = plot_of_profile(profile, tokens);
  plot.heads = drawn.size();
  if (others.keys > 0) {
    plot.notes.push_back(
        left_out_heads(others.keys, fmt::format("that have other than {} keys", profile.keys())));
  }
  if (const size_t none = others.shares + profile.names().size() - drawn.size(); none > 0) {
    plot.notes.push_back(left_out_heads(none, kWithoutShares));
  }
  if (heads.is_table) {
    plot.notes.emplace_back("a table does not tell where text and frames begin");
  }
  heads.records = profile.names();
  plot.chart.text =
      plot_text(heads, plot, "mass that each key gets, mean over a layer's heads", drawn);
  return plot;
}

/// Leaves the records whose weights are shares of a row, which have an entropy.
void erase_without_shares(std::vector<HeadRecord>& records, const NumberTable& numbers) {
  std::vector<HeadName> names;
  for (const HeadRecord& record : records) names.push_back(record.name);
  std::set<HeadName> found;
  for (const HeadRecord& head : mean_heads(numbers, names).records) {
    if (has_shares(head.metrics)) found.insert(head.name);
  }
  std::erase_if(records, [&](const HeadRecord& record) { return !found.contains(record.name); });
}

/// Throws Error(file) at a mass that no row gives. NaN: the head has no row that counts.
void check_masses(const HeadRecord& record, const std::string& path) {
  const std::vector<double>& masses = record.arrays.front().values;
  for (size_t key = 0; key < masses.size(); ++key) {
    const double mass = masses[key];
    if (std::isnan(mass) || (mass >= 0 && mass <= 1 + kMassRounding)) continue;
    throw file_error(path, head_words(record.name),
                     fmt::format("column_mass of key {}: a mass is 0 to 1 (got {:g})", key, mass));
  }
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
  const std::vector<SelectedCall> with_shares = calls_with_shares(work.calls);
  if (with_shares.empty()) throw usage_error(kNoMasses);
  const std::vector<SelectedCall> calls = alike_calls(with_shares);
  StatsChoice choice = work.request.choice();
  choice.arrays = {HeadArray::column_mass};
  const StatsJobs jobs = make_stats_jobs(choice, calls);
  const TokenGrid& tokens = calls.front().call->problem->key_tokens();
  std::vector<HeadRecord> names;
  for (const ReductionJob& job : jobs.jobs) {
    names.push_back({head_name(job.task.problem->id(), job.task.batch, job.task.head), {}, {}});
  }
  KeyProfile profile(std::move(names));
  const MemoryReservation held = work.run.budget().reserve(
      (std::ssize(profile.layers()) + work.run.workers()) * tokens.tokens() *
          static_cast<int64_t>(sizeof(LayerMasses::Sum)),
      "the masses of the keys");
  HeadRecordSink sink(jobs.jobs, {choice.arrays, choice.thresholds, jobs.tokens},
                      [&](const HeadRecord& record) { profile.take(record); });
  work.run.reduce(jobs.jobs, sink);
  if (work.run.is_plan_only()) return std::nullopt;
  PlotHeads heads;
  heads.title = work.title;
  heads.how = plot_rows_words(work.request);
  return finished_plot(profile, &tokens, std::move(heads),
                       {count_heads(work.calls) - count_heads(with_shares),
                        count_heads(with_shares) - count_heads(calls)});
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
  MemoryReservation held_numbers;
  const NumberTable numbers = read_number_table(path, budget, held_numbers);
  settle_where_of_table(o.selection, numbers);
  std::vector<HeadName> names;
  for (const HeadRecord& record : all) names.push_back(record.name);
  std::vector<HeadRecord> chosen;
  for (const size_t i : select_stored(names, o.selection, console)) {
    chosen.push_back(std::move(all[i]));
  }
  const size_t selected = chosen.size();
  erase_without_shares(chosen, numbers);
  const size_t with_shares = chosen.size();
  if (with_shares == 0) throw usage_error(kNoMasses);
  for (const HeadRecord& record : chosen) check_masses(record, path);
  const std::vector<HeadRecord> alike = alike_records(std::move(chosen));
  std::vector<HeadRecord> alike_names;
  for (const HeadRecord& record : alike) alike_names.push_back({record.name, {}, {}});
  KeyProfile profile(std::move(alike_names));
  for (const HeadRecord& record : alike) profile.take(record);
  PlotHeads heads;
  heads.is_table = true;
  heads.title = file_name(path);
  return finished_plot(profile, nullptr, std::move(heads),
                       {selected - with_shares, with_shares - alike.size()});
}

}  // namespace attnscope
