#include "cli/plot/plot_logits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "cli/plot/plot_words.h"
#include "core/base/error.h"
#include "core/base/number_words.h"
#include "core/problem/sampled_rows.h"
#include "core/products/value_counts.h"
#include "core/stream/logit_check.h"
#include "core/stream/tile_sink.h"

namespace attnscope {
namespace {

/// Rows of each head unless more or fewer are asked for.
constexpr int64_t kLogitRows = 256;
/// So far below their row's largest logits say that an entry is masked: programs write biases of
/// −10⁴ for that, beside which all others would share one bin.
constexpr float kFarBelow = 1000;

/// All digits of powers of two down to that of kLeastExponent.
constexpr int kWidthDigits = 10;

/// Counts the logits of tasks, those of one layer together.
class LogitSink final : public TileSink {
 public:
  /// `layer_of`: [tasks].
  LogitSink(std::span<const HeadTask> tasks, std::vector<size_t> layer_of, size_t layers)
      : layer_of_(std::move(layer_of)), counts_(layers) {
    for (const HeadTask& task : tasks) most_keys_ = std::max(most_keys_, task.keys.size());
  }

  TileRequest request() const override {
    TileRequest request;
    request.norms = false;
    request.quantity = Quantity::logits;
    request.chunk_rows = kChunkRows;
    // Rows come whole: each has a largest logit.
    request.chunk_cols = most_keys_;
    return request;
  }
  void begin(std::span<const HeadTask>, int) override {}
  void consume(const Tile& tile) override {
    ValueCounts found;
    const auto* values = reinterpret_cast<const float*>(tile.chunks.front());
    for (int64_t row = 0; row < tile.rows.size(); ++row, values += most_keys_) {
      const std::span<const float> logits(values, static_cast<size_t>(tile.task->keys.size()));
      check_logit_row(*tile.task, tile.task->row_at(tile.rows.begin + row),
                      {0, tile.task->keys.size()}, logits);
      const float largest = *std::max_element(logits.begin(), logits.end());
      found.add(logits, std::max(largest - kFarBelow, std::numeric_limits<float>::lowest()));
    }
    const std::lock_guard lock(mutex_);
    counts_[layer_of_[static_cast<size_t>(tile.task_index)]].add(found);
  }
  void end() override {}

  std::vector<ValueCounts>& counts() { return counts_; }

 private:
  static constexpr int64_t kChunkRows = 16;

  int64_t most_keys_ = 0;
  const std::vector<size_t> layer_of_;
  std::mutex mutex_;
  std::vector<ValueCounts> counts_;  ///< [layers]
};

/// The tasks whose logits are counted, and what they borrow.
struct LogitTasks {
  std::map<int64_t, std::vector<int64_t>> rows;  ///< by the number of queries
  std::vector<HeadTask> tasks;
  std::vector<HeadRecord> names;  ///< [tasks]
  size_t others = 0;              ///< heads without logits

  LogitTasks(const std::vector<SelectedCall>& calls, int64_t sample) {
    for (const SelectedCall& selected : calls) {
      const AttentionProblem& problem = *selected.call->problem;
      if (is_linear(problem.score())) {
        others += selected.batch.size() * selected.heads.size();
        continue;
      }
      const int64_t queries = problem.num_queries();
      // Tasks borrow the lists, which therefore are made once.
      const auto [list, is_new] = rows.try_emplace(queries);
      if (is_new && sample > 0 && sample < queries) list->second = sampled_rows(queries, sample);
      for (const int64_t batch : selected.batch) {
        for (const int64_t head : selected.heads) {
          tasks.push_back(
              {&problem, batch, head, {0, queries}, list->second, {0, problem.num_keys()}});
          names.push_back({head_name(problem.id(), batch, head), {}, {}});
        }
      }
    }
  }
};

/// A staircase over the bins; adds its numbers.
ChartSeries stairs_of(const ValueCounts& counts, const LayerHeads& layer, PlotNumbers& numbers) {
  ChartSeries series;
  series.points.push_back({counts.edge(0), 0});
  for (size_t i = 0; i < counts.counts().size(); ++i) {
    const double share =
        static_cast<double>(counts.counts()[i]) / static_cast<double>(counts.total());
    series.points.push_back({counts.edge(i), share});
    series.points.push_back({counts.edge(i + 1), share});
    numbers.rows.push_back({layer_value(layer), layer.name, counts.edge(i), counts.edge(i + 1),
                            counts.counts()[i], share});
  }
  series.points.push_back({counts.edge(counts.counts().size()), 0});
  return series;
}

/// Curves, numbers and axes of the layers that have logits, in bins as wide as the widest.
Plot plot_of_counts(std::vector<ValueCounts>& all, std::span<const LayerHeads> layers) {
  int exponent = ValueCounts::kLeastExponent;
  for (const ValueCounts& counts : all) exponent = std::max(exponent, counts.exponent());
  Plot plot;
  plot.numbers.columns = {"layer", "name", "low", "high", "entries", "share"};
  std::vector<std::string> names;
  std::vector<size_t> which;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (all[i].total() == 0) continue;
    all[i].widen(exponent);
    plot.chart.series.push_back(stairs_of(all[i], layers[i], plot.numbers));
    which.push_back(names.size());
    names.push_back(layers.size() > kMostNamedSeries ? layer_number(layers[i]) : layers[i].name);
  }
  name_series(plot.chart, names, which, "layer");
  plot.chart.x.title = "logit: what the softmax is taken of";
  plot.chart.y = {fmt::format("share of a layer's entries in bins {} wide",
                              number_words(std::ldexp(1.0, exponent), kWidthDigits)),
                  false,
                  true,
                  {},
                  {}};
  return plot;
}

}  // namespace

std::optional<Plot> plot_logits(const PlotWork& work) {
  const PlotRequest& o = work.request;
  const int64_t sample = o.exact ? 0 : o.sample > 0 ? o.sample : kLogitRows;
  const LogitTasks all(work.calls, sample);
  if (all.tasks.empty()) throw usage_error("--what logits: scores that are linear have none");
  const std::vector<LayerHeads> layers = heads_by_layer(all.names);
  std::vector<size_t> layer_of(all.tasks.size()), drawn(all.tasks.size());
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    for (const size_t place : layers[layer].heads) layer_of[place] = layer;
  }
  std::iota(drawn.begin(), drawn.end(), size_t{0});
  LogitSink sink(all.tasks, std::move(layer_of), layers.size());
  work.run.run(all.tasks, sink);
  if (work.run.is_plan_only()) return std::nullopt;
  int64_t masked = 0, total = 0;
  for (const ValueCounts& counts : sink.counts()) {
    masked += counts.masked();
    total += counts.total();
  }
  if (total == 0) throw usage_error("--what logits: all entries of all heads are masked");
  Plot plot = plot_of_counts(sink.counts(), layers);
  plot.heads = drawn.size();
  if (all.others > 0) {
    plot.notes.push_back(left_out_heads(all.others, "of linear scores, which have no logits"));
  }
  if (masked > 0) {
    plot.notes.push_back(fmt::format(
        "left out: masked entries and those more than 1000 below their row's largest "
        "({} of all)",
        share_words(static_cast<double>(masked) / static_cast<double>(masked + total))));
  }
  PlotHeads heads;
  heads.title = work.title;
  heads.records = all.names;
  heads.how = sample > 0 ? fmt::format("up to {} rows of each head", sample) : "";
  plot.chart.text = plot_text(heads, plot, "how often which logits occur", drawn);
  return plot;
}

}  // namespace attnscope
