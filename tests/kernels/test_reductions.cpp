// Streams of reductions on every backend against sums over maps computed directly in double.
#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <string>

#include "core/base/error.h"
#include "core/problem/sampled_rows.h"
#include "core/reduce/head_metrics.h"
#include "core/reduce/reduction_stream.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/backend/backend_harness.h"
#include "tests/support/backend/forwarding_backend.h"
#include "tests/support/catch.h"

namespace attnscope::test {
namespace {

/// A whole map and everything that can be taken from it, by the definitions.
struct ExpectedHead {
  std::vector<std::vector<double>> weights;
  std::vector<bool> masked;
  double tolerance = 0;  ///< relative, of a weight
};

ExpectedHead expected_head(const Oracle& oracle, int64_t batch, int64_t head) {
  ExpectedHead expected;
  for (int64_t i = 0; i < oracle.problem().num_queries(); ++i) {
    const Oracle::Row row = oracle.row(batch, head, i);
    expected.weights.push_back(row.weights);
    expected.masked.push_back(
        std::all_of(row.weights.begin(), row.weights.end(), [](double w) { return w == 0; }));
    expected.tolerance = std::max(expected.tolerance, 1e-4 + 2 * row.logit_error);
  }
  return expected;
}

struct Kept {
  RowReduction row;
  std::vector<double> masses;
};

/// Keeps all that a stream yields for one head.
class KeepingSink : public ReductionSink {
 public:
  void block_row(int64_t, int64_t row, std::span<const float> max,
                 std::span<const double> sum) override {
    const std::lock_guard lock(mutex_);
    REQUIRE(block_max.count(row) == 0);
    block_max[row].assign(max.begin(), max.end());
    block_sum[row].assign(sum.begin(), sum.end());
  }
  void panel(int64_t, int64_t first, const PanelReduction& panel) override {
    const std::lock_guard lock(mutex_);
    for (int64_t i = 0; i < panel.num_rows(); ++i) {
      const double* masses = panel.masses(i);
      rows[first + i] = {panel.row(i), {masses, masses + panel.segments().count()}};
    }
  }
  void head(int64_t, const HeadTotals& head_totals) override {
    REQUIRE(!done);
    done = true;
    totals = head_totals;
  }

  bool done = false;
  HeadTotals totals;
  std::map<int64_t, std::vector<float>> block_max;
  std::map<int64_t, std::vector<double>> block_sum;
  std::map<int64_t, Kept> rows;

 private:
  std::mutex mutex_;
};

struct Worst {
  double excess = 0;
  std::string text;
  void take(double got, double expected, double tolerance, const std::string& what) {
    const double error = std::fabs(got - expected) / tolerance;
    if (got == expected || error <= excess) return;
    excess = std::isnan(error) ? 1e300 : error;
    text = what + ": got " + std::to_string(got) + ", expected " + std::to_string(expected) +
           " ± " + std::to_string(tolerance);
  }
  void check() const {
    INFO(text);
    CHECK(excess <= 1);
  }
};

/// Segment of a key by the definition, independent of KeySegments.
int64_t segment_of(const TokenGrid& grid, int64_t key, int64_t batch) {
  const Segment kind = grid.segment(key, batch);
  const int64_t frames = grid.has_grid() ? grid.frames() : 1;
  if (kind == Segment::text) return 0;
  if (kind == Segment::padding) return frames + 1;
  return grid.has_grid() ? 1 + grid.coord(key)->t : 1;
}

int64_t keys_for(std::vector<double> weights, double share) {
  std::sort(weights.begin(), weights.end(), std::greater<>());
  double total = 0;
  for (double w : weights) total += w;
  double sum = 0;
  int64_t count = 0;
  while (sum < share * total) sum += weights[static_cast<size_t>(count++)];
  return count;
}

class HeadCheck {
 public:
  HeadCheck(const Oracle& oracle, const ExpectedHead& expected, int64_t batch,
            const ReductionRequest& request, const KeepingSink& sink)
      : problem_(oracle.problem()),
        grid_(problem_.key_tokens()),
        expected_(expected),
        batch_(batch),
        request_(request),
        sink_(sink),
        keys_(static_cast<double>(problem_.num_keys())) {}

  void run(const std::vector<int64_t>& rows) {
    REQUIRE(sink_.done);
    for (size_t i = 0; i < rows.size(); ++i) check_row(static_cast<int64_t>(i), rows[i]);
    check_columns(rows);
    if (request_.block > 0) check_blocks(rows);
    if (request_.diagonals) check_diagonals(rows);
    if (request_.offsets) check_offsets(rows);
    worst_.check();
  }

 private:
  const std::vector<double>& weights(int64_t row) const {
    return expected_.weights[static_cast<size_t>(row)];
  }
  /// Of a sum of weights that is `mass`, with a floor that an empty map would not pass.
  double allowed(double mass) const { return 1e-3 / keys_ + (expected_.tolerance + 1e-5) * mass; }

  void check_row(int64_t position, int64_t row) {
    if (!request_.any_rows()) return;
    REQUIRE(sink_.rows.count(position) == 1);
    const Kept& got = sink_.rows.at(position);
    const std::vector<double>& w = weights(row);
    const std::string at = "row " + std::to_string(row) + " ";
    const bool masked = expected_.masked[static_cast<size_t>(row)];
    if (problem_.score() != ScoreFunction::sigmoid) CHECK(got.row.masked == masked);
    const auto largest = std::max_element(w.begin(), w.end());
    worst_.take(got.row.max_weight, *largest, allowed(*largest), at + "max");
    std::vector<double> masses(static_cast<size_t>(got.masses.size()));
    double entropy = 0;
    const double mass = problem_.sinks().is_none() ? 1 : std::accumulate(w.begin(), w.end(), 0.0);
    for (size_t j = 0; j < w.size(); ++j) {
      masses[static_cast<size_t>(segment_of(grid_, static_cast<int64_t>(j), batch_))] += w[j];
      if (w[j] > 0) entropy -= w[j] / mass * std::log(w[j] / mass);
    }
    for (size_t s = 0; s < masses.size(); ++s) {
      worst_.take(got.masses[s], masses[s], allowed(masses[s]), at + "mass " + std::to_string(s));
    }
    if (masked) return;
    if (request_.max_keys && got.row.masked) {
      // Weights of sigmoid rows may all lie below what float32 holds.
      CHECK(got.row.max_key == -1);
      CHECK(*largest < 2e-38);
    } else if (request_.max_keys) {
      REQUIRE(got.row.max_key >= 0);
      const double weight = w[static_cast<size_t>(got.row.max_key)];
      worst_.take(weight, *largest, allowed(*largest), at + "max key");
    }
    if (request_.entropy) {
      worst_.take(got.row.entropy, entropy, 2e-4 + 2 * expected_.tolerance * (1 + entropy),
                  at + "entropy");
    }
    if (request_.places) check_places(got.row, row, at);
    const auto& shares = request_.share_rows;
    if (std::binary_search(shares.begin(), shares.end(), row)) check_shares(got.row, w, at);
  }

  void check_shares(const RowReduction& got, const std::vector<double>& w, const std::string& at) {
    // Weights of sigmoid rows may lie below what float32 holds.
    if (*std::max_element(w.begin(), w.end()) < 1e-30) return;
    for (size_t i = 0; i < kKeyShares.size(); ++i) {
      // Counts within which rounding may move keys across a share's end.
      const auto low = static_cast<double>(keys_for(w, kKeyShares[i] - 1e-4));
      const auto high = static_cast<double>(keys_for(w, kKeyShares[i] + 1e-4));
      const auto count = static_cast<double>(got.keys_for[i]);
      worst_.take(std::clamp(count, low, high), count, 0.5, at + "keys for a share");
    }
  }

  void check_places(const RowReduction& got, int64_t row, const std::string& at) {
    const auto from = problem_.query_tokens().coord(row);
    PlaceMasses masses;
    for (int64_t key = 0; from && key < problem_.num_keys(); ++key) {
      const auto to = grid_.coord(key);
      if (!to) continue;
      const double w = weights(row)[static_cast<size_t>(key)];
      const int64_t dt = std::abs(to->t - from->t);
      const int64_t reach = std::max(std::abs(to->y - from->y), std::abs(to->x - from->x));
      if (dt != 0 && reach == 0) masses.same_position += w;
      if (reach <= request_.band) masses.band += w;
      if (dt <= 1 && reach <= 2) masses.local += w;
    }
    worst_.take(got.places.same_position, masses.same_position, allowed(masses.same_position),
                at + "same position");
    worst_.take(got.places.band, masses.band, allowed(masses.band), at + "band");
    worst_.take(got.places.local, masses.local, allowed(masses.local), at + "local");
  }

  void check_columns(const std::vector<int64_t>& rows) {
    if (!request_.columns) return;
    std::vector<double> mass(static_cast<size_t>(problem_.num_keys()));
    double counted = 0;
    for (int64_t row : rows) {
      counted += expected_.masked[static_cast<size_t>(row)] ? 0 : 1;
      for (size_t j = 0; j < mass.size(); ++j) mass[j] += weights(row)[j];
    }
    const std::vector<double> got = sink_.totals.column_mass();
    REQUIRE(got.size() == mass.size());
    for (size_t j = 0; j < mass.size(); ++j) {
      const double mean = counted == 0 ? 0 : mass[j] / counted;
      worst_.take(got[j], mean, allowed(mean), "column " + std::to_string(j));
    }
  }

  void check_blocks(const std::vector<int64_t>& rows) {
    const int64_t b = request_.block;
    const auto num_rows = static_cast<int64_t>(rows.size());
    REQUIRE(static_cast<int64_t>(sink_.block_max.size()) == (num_rows + b - 1) / b);
    for (const auto& [block_row, maxima] : sink_.block_max) {
      for (size_t block = 0; block < maxima.size(); ++block) {
        double max = 0;
        double sum = 0;
        const auto first = static_cast<int64_t>(block) * b;
        for (int64_t i = block_row * b; i < std::min(num_rows, (block_row + 1) * b); ++i) {
          for (int64_t j = first; j < std::min(first + b, problem_.num_keys()); ++j) {
            const double w = weights(rows[static_cast<size_t>(i)])[static_cast<size_t>(j)];
            max = std::max(max, w);
            sum += w;
          }
        }
        const std::string at =
            "block " + std::to_string(block_row) + "," + std::to_string(block) + " ";
        worst_.take(static_cast<double>(maxima[block]), max, allowed(max), at + "max");
        worst_.take(sink_.block_sum.at(block_row)[block], sum, allowed(sum), at + "sum");
      }
    }
  }

  void check_diagonals(const std::vector<int64_t>& rows) {
    const int64_t n = problem_.num_queries();
    std::vector<double> sums(static_cast<size_t>(n + problem_.num_keys() - 1));
    for (int64_t row : rows) {
      for (int64_t j = 0; j < problem_.num_keys(); ++j) {
        sums[static_cast<size_t>(j - row + n - 1)] += weights(row)[static_cast<size_t>(j)];
      }
    }
    const std::vector<double> got = sink_.totals.diagonal_profile();
    REQUIRE(got.size() == sums.size());
    for (size_t i = 0; i < sums.size(); ++i) {
      worst_.take(got[i], sums[i], allowed(sums[i]), "diagonal " + std::to_string(i));
    }
  }

  void check_offsets(const std::vector<int64_t>& rows) {
    const int64_t t_count = 2 * grid_.frames() - 1;
    const int64_t y_count = 2 * grid_.height() - 1;
    const int64_t x_count = 2 * grid_.width() - 1;
    std::vector<double> mass(static_cast<size_t>(t_count * y_count * x_count));
    double total = 0;
    for (int64_t row : rows) {
      const auto from = problem_.query_tokens().coord(row);
      for (int64_t key = 0; from && key < problem_.num_keys(); ++key) {
        const auto to = grid_.coord(key);
        if (!to) continue;
        const int64_t t = to->t - from->t + grid_.frames() - 1;
        const int64_t y = to->y - from->y + grid_.height() - 1;
        const int64_t x = to->x - from->x + grid_.width() - 1;
        const double w = weights(row)[static_cast<size_t>(key)];
        mass[static_cast<size_t>((t * y_count + y) * x_count + x)] += w;
        total += w;
      }
    }
    const std::vector<double> got = sink_.totals.offset_kernel();
    REQUIRE(got.size() == mass.size());
    // Sigmoid rows may hold next to nothing, and shares of nothing say nothing.
    if (total < 1e-3) return;
    for (size_t i = 0; i < mass.size(); ++i) {
      const double share = total == 0 ? 0 : mass[i] / total;
      worst_.take(got[i], share, 1e-6 + 2 * expected_.tolerance * share,
                  "offset " + std::to_string(i));
    }
  }

  const AttentionProblem& problem_;
  const TokenGrid& grid_;
  const ExpectedHead& expected_;
  const int64_t batch_;
  const ReductionRequest& request_;
  const KeepingSink& sink_;
  const double keys_;
  Worst worst_;
};

void stream_head(const TileBackend& backend, const HeadTask& task, const ReductionRequest& request,
                 KeepingSink& sink, int64_t budget_bytes = int64_t{1} << 30, int workers = 2) {
  MemoryBudget budget(budget_bytes);
  const ReductionJob job{task, request};
  const ReductionPlan plan = plan_reductions({&job, 1}, backend, budget.limit(), workers);
  CHECK(plan.bytes_total <= budget.limit());
  CHECK(ReductionStream(backend, budget).run({&job, 1}, plan, sink));
}

void check_case(const AttentionCase& description, ReductionRequest request) {
  static const std::vector<NamedBackend> backends = all_backends();
  const Oracle oracle(description);
  const AttentionProblem& problem = oracle.problem();
  request.entropy = request.entropy && is_normalised(problem.score());
  const std::vector<int64_t> share_rows = sampled_rows(problem.num_queries(), 5);
  if (request.rows) request.share_rows = share_rows;
  const int64_t batch = problem.batch() - 1;
  const int64_t head = problem.num_heads() - 1;
  const ExpectedHead expected = expected_head(oracle, batch, head);
  for (const NamedBackend& named : backends) {
    if (named.is_twin_for(description.dtype) || named.leaves(oracle.problem())) continue;
    INFO(oracle.text() << ", block " << request.block << ", backend " << named.name);
    const HeadTask task{
        &problem, batch, head, {0, problem.num_queries()}, {}, {0, problem.num_keys()}};
    KeepingSink sink;
    stream_head(*named.backend, task, request, sink);
    HeadCheck(oracle, expected, batch, request, sink).run(iota(problem.num_queries()));
  }
}

ReductionRequest everything(int64_t block) {
  ReductionRequest request;
  request.rows = request.entropy = request.max_keys = request.places = true;
  request.columns = request.diagonals = request.offsets = true;
  request.band = 1;
  request.block = block;
  return request;
}

/// 3 × 5 × 7 video tokens and 13 of text.
AttentionCase joint_case(TextPlace place) {
  return {.shape = {2, 4, 2, 118, 118, 16},
          .dtype = DType::bf16,
          .amplitude = 1.5,
          .grid = {3, 5, 7},
          .text = 13,
          .place = place,
          .text_valid = {9, 11}};
}

}  // namespace

TEST_CASE("all reductions of joint attention agree with double precision") {
  for (const TextPlace place : {TextPlace::start, TextPlace::end}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      AttentionCase description = joint_case(place);
      description.dtype = dtype;
      check_case(description, everything(16));
    }
  }
}

TEST_CASE("reductions agree with double precision under every mask and score function",
          "[numbers]") {
  std::vector<std::string_view> masks(std::begin(kMaskNames), std::end(kMaskNames));
  masks.insert(masks.end(), std::begin(kSquareMaskNames), std::end(kSquareMaskNames));
  for (const std::string_view mask : masks) {
    for (const ScoreFunction score : {ScoreFunction::softmax, ScoreFunction::sigmoid,
                                      ScoreFunction::linear_elu1, ScoreFunction::linear_relu}) {
      const bool finite_bias = mask == "dense_float" || mask.ends_with("_bias");
      if (is_linear(score) && finite_bias) continue;
      AttentionCase description = joint_case(TextPlace::start);
      description.mask = mask;
      description.score = score;
      check_case(description, everything(12));
    }
  }
}

TEST_CASE("reductions of capped logits and sinks agree with double precision", "[numbers]") {
  for (const std::string_view mask : {"none", "causal", "masked_rows", "dense_float"}) {
    for (const auto& [score, sinks] : {std::pair{ScoreFunction::softcap(3), "none"},
                                       {ScoreFunction::softcap(30), "query"},
                                       {ScoreFunction::softmax, "head"}}) {
      AttentionCase description = joint_case(TextPlace::start);
      description.mask = mask;
      description.score = score;
      description.sinks = sinks;
      check_case(description, everything(12));
    }
  }
}

TEST_CASE("reductions of products of one sign are within their proven bound") {
  ReductionRequest request = everything(16);
  request.share_rows = {};
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    AttentionCase description = joint_case(TextPlace::start);
    description.dtype = dtype;
    description.common_channel = 100;
    check_case(description, request);
  }
}

TEST_CASE("blocks of any size agree with double precision") {
  for (const int64_t block : {1, 2, 7, 16, 48, 49, 100, 118, 500}) {
    ReductionRequest request;
    request.block = block;
    check_case(joint_case(TextPlace::end), request);
  }
}

TEST_CASE("reductions of long rows agree with double precision", "[numbers]") {
  // Segments of more than 4096 keys, frames that end anywhere, and several row blocks.
  const AttentionCase description{.shape = {1, 1, 1, 9030, 9030, 8},
                                  .grid = {2, 1, 4500},
                                  .text = 30,
                                  .place = TextPlace::start};
  static const std::vector<NamedBackend> backends = all_backends();
  const Oracle oracle(description);
  const AttentionProblem& problem = oracle.problem();
  const std::vector<int64_t> rows = sampled_rows(problem.num_queries(), 110);
  ExpectedHead expected;
  expected.weights.resize(9030);
  expected.masked.resize(9030);
  for (int64_t row : rows) {
    const Oracle::Row r = oracle.row(0, 0, row);
    expected.weights[static_cast<size_t>(row)] = r.weights;
    expected.tolerance = std::max(expected.tolerance, 1e-4 + 2 * r.logit_error);
  }
  ReductionRequest request = everything(0);
  request.share_rows = rows;
  for (const NamedBackend& named : backends) {
    if (named.bf16_dots || named.name == "reference") continue;
    INFO("backend " << named.name);
    const HeadTask task{&problem, 0, 0, {}, rows, {0, problem.num_keys()}};
    KeepingSink sink;
    stream_head(*named.backend, task, request, sink);
    HeadCheck(oracle, expected, 0, request, sink).run(rows);
  }
}

TEST_CASE("results do not depend on memory, threads or instruction set") {
  const int64_t block = GENERATE(16, 64, 100);
  const AttentionCase description = joint_case(TextPlace::start);
  const Oracle oracle(description);
  const AttentionProblem& problem = oracle.problem();
  const HeadTask task{&problem, 1, 3, {0, 118}, {}, {0, 118}};
  const ReductionRequest request = everything(block);
  struct Result {
    std::vector<double> columns, diagonals, offsets;
    std::map<int64_t, std::vector<float>> maxima;
    std::map<int64_t, std::vector<double>> sums;
    double entropy, same_frame;
    bool operator==(const Result&) const = default;
  };
  std::map<std::string, Result> first;  // by kind
  for (const NamedBackend& named : all_backends()) {
    if (named.name == "reference" || named.backend->name() == "cpu-nofma") continue;
    for (const int workers : {1, 3}) {
      int64_t smallest = int64_t{1} << 30;
      const ReductionJob job{task, request};
      try {
        plan_reductions({&job, 1}, *named.backend, 1, workers);
      } catch (const Error& e) {
        const std::string text = e.what();
        smallest = std::stoll(text.substr(text.find("works is ") + 9));
      }
      for (const int64_t budget : {smallest, int64_t{1} << 30}) {
        KeepingSink sink;
        stream_head(*named.backend, task, request, sink, budget, workers);
        const Result got{sink.totals.column_mass(),
                         sink.totals.diagonal_profile(),
                         sink.totals.offset_kernel(),
                         sink.block_max,
                         sink.block_sum,
                         sink.totals.mean(RowValue::entropy),
                         sink.totals.mean(RowValue::same_frame_mass)};
        INFO("block " << block << ", " << named.name << " with " << workers << " workers and "
                      << budget << " bytes");
        const auto known = first.emplace(named.kind(), got).first;
        CHECK((known->second == got));
      }
    }
  }
}

namespace {

/// Hides that the backend within could add to the columns of several units at once.
class OneUnit : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  int64_t open_units() const override { return 1; }
};

}  // namespace

TEST_CASE("a backend adds to the columns of as many units as the panel has open") {
  const Oracle oracle(joint_case(TextPlace::start));
  const AttentionProblem& problem = oracle.problem();
  const HeadTask task{&problem, 1, 3, {0, 118}, {}, {0, 118}};
  ReductionRequest request;
  request.columns = true;
  request.block = 16;
  for (const CpuProducts products : {CpuProducts::best, CpuProducts::f16_tiles_emulated}) {
    if (!cpu_products_obstacle(products).empty()) continue;
    const auto own = make_cpu_backend({.threads = 1, .products = products});
    const OneUnit one(make_cpu_backend({.threads = 1, .products = products}));
    KeepingSink expected, given;
    stream_head(*own, task, request, expected);
    stream_head(one, task, request, given);
    CHECK(given.block_max == expected.block_max);
    CHECK(given.block_sum == expected.block_sum);
    CHECK(given.totals.column_mass() == expected.totals.column_mass());
  }
}

}  // namespace attnscope::test
