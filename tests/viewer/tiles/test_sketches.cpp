// Heads at a glance: made from a sample after the tiles that are wanted, and from all rows on
// request.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "core/problem/sampled_rows.h"
#include "core/reduce/head_metrics.h"
#include "core/reduce/reduction_stream.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/service_harness.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr HeadId kHead{0, 0, 1};

AttentionCase video_case(std::string_view mask = "none") {
  AttentionCase c;
  c.shape = {1, 4, 2, 304, 304, 8};
  c.mask = mask;
  c.grid = {3, 10, 10};
  c.text = 4;
  c.place = TextPlace::start;
  return c;
}

bool near(double got, double expected) {
  return std::abs(got - expected) <= 1e-7 + 2e-4 * std::abs(expected);
}

WishesByKind sketches_of(std::vector<HeadId> heads, bool exact = false) {
  WishesByKind wishes;
  (exact ? wishes.exact_sketches : wishes.sketches) = std::move(heads);
  return wishes;
}

std::shared_ptr<const HeadSketch> sketch_of(ServiceHarness& harness, const HeadId& head,
                                            bool exact) {
  harness.want(sketches_of({head}, exact));
  REQUIRE(harness.wait([&] { return find(harness.service(), SketchRequest{head}) != nullptr; }));
  return find(harness.service(), SketchRequest{head});
}

/// Cells over these rows of the reference's map.
void check_cells(const HeadSketch& sketch, const Oracle& oracle, const std::vector<int64_t>& rows) {
  const SketchCells& cells = sketch.cells;
  std::vector<double> max(sketch.max.size()), sum(sketch.max.size()), count(sketch.max.size());
  for (const int64_t row : rows) {
    const Oracle::Row expected = oracle.row(kHead.batch, kHead.head, row);
    for (int64_t key = 0; key < cells.keys; ++key) {
      const auto at = static_cast<size_t>(row / cells.height * cells.cols() + key / cells.width);
      max[at] = std::max(max[at], expected.weights[static_cast<size_t>(key)]);
      sum[at] += expected.weights[static_cast<size_t>(key)];
      count[at] += 1;
    }
  }
  int64_t wrong = 0;
  for (size_t i = 0; i < max.size(); ++i) {
    REQUIRE(count[i] > 0);
    if (!near(double{sketch.max[i]}, max[i])) ++wrong;
    if (!near(double{sketch.mean[i]}, sum[i] / count[i])) ++wrong;
  }
  CHECK(wrong == 0);
}

/// To the bit, or as near as sums over rows in another order of roundings are.
void check_numbers(const HeadSketch& sketch, const HeadMetrics& expected, double tolerance = 0) {
  for (const HeadField& field : head_fields()) {
    INFO(field.name);
    const auto number = number_of(expected, field);
    const double got = sketch.number(field);
    if (number) CHECK(std::abs(got - *number) <= tolerance * std::abs(*number));
    if (!number) CHECK(std::isnan(got));
  }
  CHECK(sketch.head_class == expected.head_class);
}

/// The numbers that `stats` gives of a head over these rows.
HeadMetrics stats_of(const TileBackend& backend, const AttentionProblem& problem,
                     const std::vector<int64_t>& rows, const std::vector<int64_t>& counted) {
  struct Sink : ReductionSink {
    void head(int64_t, const HeadTotals& head) override { totals = head; }
    HeadTotals totals;
  } sink;
  const HeadTask task{
      &problem, kHead.batch, kHead.head, {0, problem.num_queries()}, rows, {0, problem.num_keys()}};
  const ReductionJob job{task, metrics_request(problem, counted)};
  MemoryBudget budget(int64_t{64} << 20);
  const ReductionPlan plan = plan_reductions({&job, 1}, backend, budget.available());
  REQUIRE(ReductionStream(backend, budget).run({&job, 1}, plan, sink));
  return head_metrics(sink.totals, job.task, job.request, problem.num_queries());
}

}  // namespace

TEST_CASE("a sampled sketch shows the reference's weights, and the numbers of stats --sample") {
  for (const std::string_view mask : {"none", "causal", "padded_keys"}) {
    INFO(mask);
    const Oracle oracle(video_case(mask));
    ServiceHarness harness(oracle.problem());
    const auto sketch = sketch_of(harness, kHead, false);
    const std::vector<int64_t> rows = sampled_rows(304, 64);
    CHECK(sketch->rows == 64);
    CHECK_FALSE(sketch->exact);
    check_cells(*sketch, oracle, rows);
    check_numbers(*sketch, stats_of(harness.backend(), oracle.problem(), rows, rows));
    CHECK(harness.service().problem(SketchRequest{kHead}) == "");
  }
}

TEST_CASE("an exact sketch has every row, and the numbers of stats") {
  for (const std::string_view mask : {"none", "causal"}) {
    INFO(mask);
    const Oracle oracle(video_case(mask));
    ServiceHarness harness(oracle.problem());
    sketch_of(harness, kHead, false);
    harness.want(sketches_of({kHead}, true));
    REQUIRE(harness.wait([&] { return find(harness.service(), SketchRequest{kHead})->exact; }));
    const auto sketch = find(harness.service(), SketchRequest{kHead});
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < 304; ++row) rows.push_back(row);
    check_cells(*sketch, oracle, rows);
    check_numbers(*sketch,
                  stats_of(harness.backend(), oracle.problem(), {}, sampled_rows(304, 256)), 1e-6);
    // It is not made worse by asking for less.
    harness.want(sketches_of({kHead}, false));
    REQUIRE(harness.wait_idle());
    CHECK(find(harness.service(), SketchRequest{kHead})->exact);
  }
}

TEST_CASE("cross attention with few keys has a sketch") {
  AttentionCase c;
  c.shape = {1, 2, 2, 300, 9, 8};
  const Oracle oracle(c);
  ServiceHarness harness(oracle.problem());
  for (const bool exact : {false, true}) {
    harness.want(sketches_of({kHead}, exact));
    REQUIRE(harness.wait([&] {
      const auto found = find(harness.service(), SketchRequest{kHead});
      return found != nullptr && found->exact == exact;
    }));
    const auto sketch = find(harness.service(), SketchRequest{kHead});
    CHECK(sketch->cells.cols() == 9);
    std::vector<int64_t> rows = sketch_rows(300);
    if (exact) rows = sampled_rows(300, 300);
    check_cells(*sketch, oracle, rows);
  }
}

TEST_CASE("a head with NaN has no sketch, and a cause; others do") {
  const Oracle oracle(video_case());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const bool in_queries : {false, true}) {
    INFO((in_queries ? "q" : "k"));
    const auto tensor = [&](const char* name, int64_t heads, bool broken) {
      std::vector<float> values(static_cast<size_t>(heads * 304 * 8), 0.25f);
      // Of head 1: row 2 of q, the first that is sampled, or row 2 of its k.
      if (broken) values[static_cast<size_t>((heads / 2 * 304 + 2) * 8 + 3)] = nan;
      return HeadTensor(make_tensor(name, DType::f32, {1, heads, 304, 8}, values),
                        *parse_layout("bhsd"));
    };
    AttentionProblem::Parts parts;
    parts.q = tensor("q", 2, in_queries);
    parts.k = tensor("k", 2, !in_queries);
    parts.scale = 1;
    const AttentionProblem problem = AttentionProblem::make(parts);
    ServiceHarness harness(problem);
    harness.want(sketches_of({{0, 0, 1}, {0, 0, 0}}));
    REQUIRE(harness.wait_idle());
    CHECK(find(harness.service(), SketchRequest{{0, 0, 0}}) != nullptr);
    CHECK(find(harness.service(), SketchRequest{{0, 0, 1}}) == nullptr);
    const std::string cause = harness.service().problem(SketchRequest{{0, 0, 1}});
    INFO(cause);
    CHECK(cause.find("is NaN") != std::string::npos);
    CHECK(harness.service().status().problem == cause);
  }
}

TEST_CASE(
    "tiles come before sketches, and these do not wait for the end of a pass, nor it for them") {
  AttentionCase c;
  c.shape = {1, 3, 3, 3000, 3000, 16};
  const Oracle oracle(c);
  TileService::Settings settings = ServiceHarness::small_settings();
  settings.threads = 1;
  ServiceHarness harness(oracle.problem(), settings);
  WishesByKind wishes = sketches_of({{0, 0, 1}, {0, 0, 2}});
  const MapGeometry geometry = harness.service().geometry({});
  const TileId top{{}, Quantity::weights, geometry.top_level, 0, 0};
  wishes.tiles = {top};
  wishes.exact = {{}};
  bool tile_first = true, pass_last = true;
  harness.want(wishes);
  REQUIRE(harness.wait([&] {
    const bool any = find(harness.service(), SketchRequest{{0, 0, 1}}) != nullptr;
    const bool both = any && find(harness.service(), SketchRequest{{0, 0, 2}}) != nullptr;
    if (any && find(harness.service(), top) == nullptr) tile_first = false;
    if (!both && harness.service().exact({})) pass_last = false;
    return both;
  }));
  CHECK(tile_first);
  CHECK(pass_last);
  REQUIRE(harness.wait_idle());
  CHECK(harness.service().exact({}));
}

TEST_CASE("sketches that nobody wants any more give way to tiles") {
  const Oracle oracle(video_case());
  TileService::Settings settings = ServiceHarness::small_settings();
  ServiceHarness harness(oracle.problem(), settings);
  sketch_of(harness, kHead, false);
  const int64_t before = harness.service().status().host_bytes;
  CHECK(before >= HeadSketch::bytes(SketchCells::of(304, 304)));
  harness.want({});
  // There is no need for its room, so it stays.
  CHECK(find(harness.service(), SketchRequest{kHead}) != nullptr);
}

TEST_CASE("kept sketches are found again, and believed only where they are this call's") {
  const Oracle oracle(video_case());
  const TemporaryFolder folder;
  const auto settings = [&](const std::string& stamp) {
    TileService::Settings with = ServiceHarness::small_settings();
    with.cache_folders = {folder.path() / "cache"};
    with.call_stamps = [stamp] { return std::vector<std::string>{stamp}; };
    return with;
  };
  const std::vector<HeadId> heads{{0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {0, 0, 3}};
  const auto all_there = [&](ServiceHarness& harness, bool exact) {
    return harness.wait([&] {
      return std::all_of(heads.begin(), heads.end(), [&](const HeadId& head) {
        const auto found = find(harness.service(), SketchRequest{head});
        return found != nullptr && (found->exact || !exact);
      });
    });
  };
  const auto files = [&] {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "cache")) {
      if (entry.path().filename().string().starts_with("atlas-")) found.push_back(entry.path());
    }
    return found;
  };
  std::vector<HeadSketch> made;
  {
    ServiceHarness harness(oracle.problem(), settings("a"));
    harness.want(sketches_of(heads));
    REQUIRE(all_there(harness, false));
    for (const HeadId& head : heads) made.push_back(*find(harness.service(), SketchRequest{head}));
  }
  REQUIRE(files().size() == 1);
  {
    ServiceHarness harness(oracle.problem(), settings("a"));
    harness.want(sketches_of(heads));
    REQUIRE(all_there(harness, false));
    for (size_t h = 0; h < heads.size(); ++h) {
      CHECK(same_sketch(*find(harness.service(), SketchRequest{heads[h]}), made[h]));
    }
    CHECK(harness.service().status().problem == "");
    harness.want(sketches_of(heads, true));
    REQUIRE(all_there(harness, true));
  }
  // Written over by the exact ones, which the next opening has at once.
  REQUIRE(files().size() == 1);
  {
    ServiceHarness harness(oracle.problem(), settings("a"));
    harness.want(sketches_of(heads));
    REQUIRE(all_there(harness, true));
  }
  // Another state of the call has a file of its own.
  {
    ServiceHarness harness(oracle.problem(), settings("b"));
    harness.want(sketches_of(heads));
    REQUIRE(all_there(harness, false));
    CHECK_FALSE(find(harness.service(), SketchRequest{heads[0]})->exact);
  }
  CHECK(files().size() == 2);
  // A damaged one is none, and replaced.
  for (const auto& file : files()) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(-4, std::ios::end);
    stream.write("\x7f\x7f\x7f\x7f", 4);
  }
  ServiceHarness harness(oracle.problem(), settings("a"));
  harness.want(sketches_of(heads));
  REQUIRE(all_there(harness, false));
  CHECK_FALSE(find(harness.service(), SketchRequest{heads[0]})->exact);
}

TEST_CASE("sketches of other tensors under the same stamp are told and made anew") {
  const TemporaryFolder folder;
  AttentionCase c = video_case();
  for (const unsigned seed : {1u, 2u}) {
    c.seed = seed;
    const Oracle oracle(c);
    TileService::Settings settings = ServiceHarness::small_settings();
    settings.cache_folders = {folder.path() / "cache"};
    settings.call_stamps = [] { return std::vector<std::string>{"same"}; };
    ServiceHarness harness(oracle.problem(), settings);
    std::vector<HeadId> heads{{0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {0, 0, 3}};
    harness.want(sketches_of(heads));
    REQUIRE(harness.wait([&] { return find(harness.service(), SketchRequest{kHead}) != nullptr; }));
    check_cells(*find(harness.service(), SketchRequest{kHead}), oracle, sampled_rows(304, 64));
    REQUIRE(harness.wait_idle());
    const std::string problem = harness.service().status().problem;
    INFO(problem);
    CHECK((problem.find("do not belong to this capture") != std::string::npos) == (seed == 2));
  }
}
