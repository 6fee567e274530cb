// Numbers of a head's rows, of its keys and of its frames: against the reference in double.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/problem/key_segments.h"
#include "core/problem/sampled_rows.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/service_harness.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr HeadId kHead{0, 0, 1};
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

AttentionCase video_case(std::string_view mask = "none") {
  AttentionCase c;
  c.shape = {1, 4, 2, 604, 604, 8};
  c.mask = mask;
  c.grid = {6, 10, 10};
  c.text = 4;
  c.place = TextPlace::start;
  return c;
}

bool near(double got, double expected) {
  if (std::isnan(expected)) return std::isnan(got);
  return std::abs(got - expected) <= 1e-7 + 2e-4 * std::abs(expected);
}

/// Of these rows, as the definitions have it, entry by entry.
struct Expected {
  std::vector<double> entropy, lse, text, mass, groups;
  int64_t query_groups = 0, key_groups = 0;
};

/// Means over pairs of video tokens, pair by pair.
std::array<std::vector<double>, 3> by_offset(const Oracle& oracle,
                                             const std::vector<int64_t>& rows) {
  const TokenGrid& grid = oracle.problem().key_tokens();
  const std::array<int64_t, 3> n{grid.frames(), grid.height(), grid.width()};
  std::array<std::vector<double>, 3> sums, counts;
  for (size_t axis = 0; axis < 3; ++axis) {
    sums[axis].assign(static_cast<size_t>(2 * n[axis] - 1), 0);
    counts[axis] = sums[axis];
  }
  for (const int64_t row : rows) {
    const auto from = grid.coord(row);
    if (!from) continue;
    const Oracle::Row of = oracle.row(kHead.batch, kHead.head, row);
    if (std::all_of(of.weights.begin(), of.weights.end(), [](double w) { return w == 0; }))
      continue;
    for (int64_t key = 0; key < grid.tokens(); ++key) {
      const auto to = grid.coord(key);
      if (!to) continue;
      const std::array<int64_t, 3> offset{to->t - from->t, to->y - from->y, to->x - from->x};
      for (size_t axis = 0; axis < 3; ++axis) {
        const auto at = static_cast<size_t>(offset[axis] + n[axis] - 1);
        sums[axis][at] += of.weights[static_cast<size_t>(key)];
        counts[axis][at] += 1;
      }
    }
  }
  for (size_t axis = 0; axis < 3; ++axis) {
    for (size_t i = 0; i < sums[axis].size(); ++i) {
      sums[axis][i] = counts[axis][i] > 0 ? sums[axis][i] / counts[axis][i] : kNone;
    }
  }
  return sums;
}

Expected expected_of(const Oracle& oracle, const std::vector<int64_t>& rows) {
  const AttentionProblem& problem = oracle.problem();
  const auto queries = static_cast<size_t>(problem.num_queries());
  const auto keys = static_cast<size_t>(problem.num_keys());
  Expected e;
  e.entropy = e.lse = e.text = std::vector<double>(queries, kNone);
  e.mass.assign(keys, 0);
  e.query_groups = count_groups(problem.query_tokens());
  e.key_groups = count_groups(problem.key_tokens());
  e.groups.assign(static_cast<size_t>(e.query_groups * e.key_groups), 0);
  std::vector<double> counts(static_cast<size_t>(e.query_groups), 0);
  double counted = 0;
  for (const int64_t row : rows) {
    const Oracle::Row of = oracle.row(kHead.batch, kHead.head, row);
    double whole = 0, entropy = 0, text = 0;
    const auto group = static_cast<size_t>(group_at(problem.query_tokens(), row));
    for (size_t k = 0; k < keys; ++k) {
      const double weight = of.weights[k];
      whole += weight;
      if (weight > 0) entropy -= weight * std::log(weight);
      const auto to = static_cast<size_t>(group_at(problem.key_tokens(), static_cast<int64_t>(k)));
      if (to == 0) text += weight;
      e.mass[k] += weight;
      e.groups[group * static_cast<size_t>(e.key_groups) + to] += weight;
    }
    if (whole == 0) continue;
    counted += 1;
    counts[group] += 1;
    const auto at = static_cast<size_t>(row);
    e.entropy[at] = entropy;
    e.text[at] = text;
    e.lse[at] = of.lse;
  }
  for (double& mass : e.mass) mass /= counted;
  for (size_t i = 0; i < e.groups.size(); ++i) {
    const double count = counts[i / static_cast<size_t>(e.key_groups)];
    e.groups[i] = count > 0 ? e.groups[i] / count : kNone;
  }
  return e;
}

void check_array(const char* name, const std::vector<double>& got,
                 const std::vector<double>& expected) {
  INFO(name);
  REQUIRE(got.size() == expected.size());
  int64_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i) wrong += near(got[i], expected[i]) ? 0 : 1;
  CHECK(wrong == 0);
}

void check_tracks(const HeadTracks& tracks, const Oracle& oracle,
                  const std::vector<int64_t>& rows) {
  const Expected expected = expected_of(oracle, rows);
  CHECK(tracks.head == kHead);
  CHECK(tracks.computed == static_cast<int64_t>(rows.size()));
  check_array("entropy", tracks.entropy, expected.entropy);
  check_array("lse", tracks.lse, expected.lse);
  check_array("text", tracks.text_mass, expected.text);
  check_array("mass", tracks.column_mass, expected.mass);
  CHECK(tracks.query_groups == expected.query_groups);
  CHECK(tracks.key_groups == expected.key_groups);
  check_array("groups", tracks.group_mass, expected.groups);
  const auto offsets = by_offset(oracle, rows);
  check_array("dt", tracks.by_dt, offsets[0]);
  check_array("dy", tracks.by_dy, offsets[1]);
  check_array("dx", tracks.by_dx, offsets[2]);
}

WishesByKind tracks_of(const HeadId& head) {
  WishesByKind wishes;
  wishes.tracks = head;
  return wishes;
}

std::shared_ptr<const HeadTracks> exact_tracks(ServiceHarness& harness) {
  harness.want(tracks_of(kHead));
  REQUIRE(harness.wait([&] {
    const auto found = find(harness.service(), TracksRequest{kHead});
    return found != nullptr && found->exact;
  }));
  return find(harness.service(), TracksRequest{kHead});
}

}  // namespace

TEST_CASE("tracks of all rows are those of the reference; rows without keys have none") {
  for (const std::string_view mask : {"none", "causal", "padded_keys", "masked_rows"}) {
    const Oracle oracle(video_case(mask));
    INFO(oracle.text());
    ServiceHarness harness(oracle.problem());
    CHECK(harness.service().offers(TracksRequest{}));
    CHECK(find(harness.service(), TracksRequest{kHead}) == nullptr);
    check_tracks(*exact_tracks(harness), oracle, sampled_rows(604, 604));
    CHECK(harness.service().problem(TracksRequest{kHead}) == "");
    CHECK(harness.service().status().problem == "");
  }
}

TEST_CASE("tracks come from a sample of the rows first, which has the reference's numbers too") {
  AttentionCase c = video_case();
  c.shape = {1, 4, 2, 20004, 20004, 8};
  c.grid = {50, 20, 20};
  const Oracle oracle(c);
  TileService::Settings settings = ServiceHarness::small_settings();
  settings.threads = 1;
  ServiceHarness harness(oracle.problem(), settings);
  harness.want(tracks_of(kHead));
  std::shared_ptr<const HeadTracks> first;
  REQUIRE(harness.wait([&] {
    first = find(harness.service(), TracksRequest{kHead});
    return first != nullptr;
  }));
  CHECK_FALSE(first->exact);
  harness.want({});
  check_tracks(*first, oracle, sampled_rows(20004, 256));
}

TEST_CASE("exact tracks do not depend on the threads, to the bit, and stay") {
  const Oracle oracle(video_case());
  std::shared_ptr<const HeadTracks> first;
  for (const int threads : {1, 2}) {
    TileService::Settings settings = ServiceHarness::small_settings();
    settings.threads = threads;
    ServiceHarness harness(oracle.problem(), settings);
    const auto tracks = exact_tracks(harness);
    if (!first) first = tracks;
    CHECK(tracks->entropy == first->entropy);
    CHECK(tracks->column_mass == first->column_mass);
    CHECK(tracks->group_mass == first->group_mass);
    harness.want(tracks_of(kHead));
    REQUIRE(harness.wait_idle());
    CHECK(find(harness.service(), TracksRequest{kHead}) == tracks);
  }
}

TEST_CASE("numbers that a head does not have are not made up") {
  AttentionCase c;
  c.shape = {1, 2, 2, 120, 90, 8};
  c.score = ScoreFunction::sigmoid;
  const Oracle oracle(c);
  ServiceHarness harness(oracle.problem());
  const auto tracks = exact_tracks(harness);
  CHECK(tracks->entropy.empty());
  CHECK(tracks->lse.empty());
  CHECK(tracks->text_mass.empty());
  CHECK(tracks->by_dt.empty());
  check_array("mass", tracks->column_mass, expected_of(oracle, sampled_rows(120, 120)).mass);
  const std::string refused = thrown_text(ErrorCode::usage, [&] {
    harness.want(tracks_of({0, 0, 9}));
  });
  CHECK(refused == "the capture has no map of call 0, batch item 0, head 9");
}
