#include <cmath>

#include "core/base/error.h"
#include "core/maps/computed_map.h"
#include "core/products/differences/difference_sinks.h"
#include "tests/core/products/product_case.h"
#include "tests/support/catch.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kTokens = 64;

/// Two maps and their differences in double.
struct DoublePair {
  explicit DoublePair(const std::string& mask)
      : a(joint_case(mask)), b(joint_case(mask, ScoreFunction::softmax, 7)) {
    for (int64_t i = 0; i < kTokens; ++i) {
      const auto x = a.row(0, 0, i).weights, y = b.row(0, 3, i).weights;
      double mass_a = 0, mass_b = 0;
      rows.emplace_back();
      for (size_t j = 0; j < x.size(); ++j) {
        rows.back().push_back(x[j] - y[j]);
        mass_a += x[j];
        mass_b += y[j];
      }
      live.push_back(mass_a > 0 && mass_b > 0);
    }
  }
  Oracle a, b;
  std::vector<std::vector<double>> rows;
  std::vector<bool> live;
};

/// Streams both maps into the sink within `memory`.
void compare(const DoublePair& pair, const TileBackend& backend, PairSink& sink, int64_t memory,
             int workers) {
  const ChosenEntries all{{{0, kTokens}}, Quantity::weights};
  ComputedMap a(whole_map(pair.a.problem(), 0), all, backend);
  ComputedMap b(whole_map(pair.b.problem(), 3), all, backend, &a);
  MemoryBudget budget(memory);
  const DifferencePlan plan = plan_pair(a, b, sink, memory, workers);
  REQUIRE(stream_pair(a, b, sink, plan, budget));
  CHECK(budget.peak() == plan.bytes);
  CHECK(budget.used() == 0);
}

/// The least that is enough, which the refusal of too little tells.
int64_t least_memory(const DoublePair& pair, const TileBackend& backend, PairSink& sink) {
  const ChosenEntries all{{{0, kTokens}}, Quantity::weights};
  const ComputedMap a(whole_map(pair.a.problem(), 0), all, backend);
  const ComputedMap b(whole_map(pair.b.problem(), 3), all, backend, &a);
  try {
    plan_pair(a, b, sink, 100, 4);
  } catch (const Error& error) {
    const std::string text = error.what();
    return std::stoll(text.substr(text.rfind(" is ") + 4));
  }
  FAIL("100 bytes were enough");
  return 0;
}

bool alike(double got, double expected) {
  if (std::isnan(expected)) return std::isnan(got);
  return std::abs(got - expected) <= 1e-6;
}

void check_blocks(const DoublePair& pair, const TileBackend& backend, int64_t block, int64_t memory,
                  int workers) {
  PooledDifference sink(block);
  compare(pair, backend, sink, memory, workers);
  const PooledMap map = sink.take();
  const int64_t side = (kTokens + block - 1) / block;
  REQUIRE(map.rows == side);
  REQUIRE(map.cols == side);
  REQUIRE(map.max.size() == static_cast<size_t>(side * side));
  double most = 0, positive = 0, negative = 0;
  for (int64_t r = 0; r < side; ++r) {
    for (int64_t c = 0; c < side; ++c) {
      double sum = 0, largest = 0;
      int64_t count = 0;
      for (int64_t i = r * block; i < std::min(kTokens, (r + 1) * block); ++i) {
        for (int64_t j = c * block; j < std::min(kTokens, (c + 1) * block); ++j) {
          const double d = pair.rows[static_cast<size_t>(i)][static_cast<size_t>(j)];
          sum += d;
          ++count;
          if (std::abs(d) > std::abs(largest)) largest = d;
        }
      }
      INFO(backend.name() << ", block " << block << ", cell " << r << " " << c);
      const auto at = static_cast<size_t>(r * side + c);
      CHECK(alike(map.mean[at], sum / static_cast<double>(count)));
      CHECK(alike(map.max[at], largest));
      most = std::max(most, std::abs(largest));
      positive = std::max(positive, largest);
      negative = std::min(negative, largest);
    }
  }
  // Nothing of this can be said of zeros, nor of sizes without a sign.
  CHECK(most > 0.01);
  if (side == 1) return;
  CHECK(positive > 0.001);
  CHECK(negative < -0.001);
}

}  // namespace

TEST_CASE("differences in blocks are those of entries, whatever the block and the memory") {
  for (const auto& backend : two_backends()) {
    for (const std::string mask : {"none", "masked_rows"}) {
      const DoublePair pair(mask);
      for (const int64_t block : {1, 7, 16, 64, 100}) {
        check_blocks(pair, *backend, block, int64_t{64} << 20, 3);
      }
      PooledDifference sink(7);
      check_blocks(pair, *backend, 7, least_memory(pair, *backend, sink), 1);
    }
  }
}

TEST_CASE("a block whose entries nobody has is no difference") {
  PooledDifference sink(2);
  const IndexRange run{0, 2};
  sink.begin({&run, 1}, 4);
  const float none = std::nanf("");
  std::vector<float> a{1, none, none, none}, b{0.5f, 0.5f, 0.5f, 0.5f};
  sink.add(0, 0, {a, b});
  sink.add(0, 1, {a, b});
  const PooledMap map = sink.take();
  CHECK(map.mean[0] == 0.5f);
  CHECK(map.max[0] == 0.5f);
  CHECK(std::isnan(map.mean[1]));
  CHECK(std::isnan(map.max[1]));
}

TEST_CASE("parts of sequences are frames, text and named segments") {
  const TokenGrid grid = TokenGrid::video(64, {3, 4, 5}, 4, TextPlace::start);
  const auto frames = sequence_frames(grid);
  REQUIRE(frames.size() == 4);
  CHECK(frames[0] == SequencePart{"text", {0, 4}});
  CHECK(frames[3] == SequencePart{"t2", {44, 64}});
  const auto segments = sequence_segments(TokenGrid::video(64, {3, 4, 5}, 4, TextPlace::end));
  REQUIRE(segments.size() == 2);
  CHECK(segments[0] == SequencePart{"video", {0, 60}});
  CHECK(segments[1] == SequencePart{"text", {60, 64}});
  // Of a token map: its segments, the video's as frames.
  const auto segment = [](const std::string& name, Modality modality, IndexRange tokens) {
    TokenSegment made;
    made.name = name;
    made.modality = modality;
    made.tokens = tokens;
    if (modality == Modality::video) made.grid = {2, 3, 4};
    return made;
  };
  const TokenGrid map = TokenGrid::of_segments({segment("prompt", Modality::text, {0, 7}),
                                                segment("film", Modality::video, {7, 31}),
                                                segment("ref1", Modality::reference, {31, 40})});
  CHECK(sequence_segments(map) ==
        std::vector<SequencePart>{{"prompt", {0, 7}}, {"film", {7, 31}}, {"ref1", {31, 40}}});
  CHECK(sequence_frames(map) ==
        std::vector<SequencePart>{
            {"prompt", {0, 7}}, {"t0", {7, 19}}, {"t1", {19, 31}}, {"ref1", {31, 40}}});
  CHECK(sequence_frames(TokenGrid::unknown(5)) == std::vector<SequencePart>{{"video", {0, 5}}});
}

TEST_CASE("sums over frames are means over their live rows") {
  for (const auto& backend : two_backends()) {
    for (const std::string mask : {"none", "masked_rows"}) {
      const DoublePair pair(mask);
      const auto parts = sequence_frames(pair.a.problem().query_tokens());
      REQUIRE(parts.size() == 4);
      PartSums sink(parts, parts);
      compare(pair, *backend, sink, int64_t{64} << 20, 3);
      const PartDifference found = sink.take();
      double most = 0;
      int64_t live_rows = 0;
      for (size_t q = 0; q < 4; ++q) {
        int64_t rows = 0;
        std::vector<double> sums(4, 0), sizes(4, 0);
        for (int64_t i = parts[q].tokens.begin; i < parts[q].tokens.end; ++i) {
          if (!pair.live[static_cast<size_t>(i)]) continue;
          ++rows;
          for (size_t k = 0; k < 4; ++k) {
            for (int64_t j = parts[k].tokens.begin; j < parts[k].tokens.end; ++j) {
              const double d = pair.rows[static_cast<size_t>(i)][static_cast<size_t>(j)];
              sums[k] += d;
              sizes[k] += std::abs(d);
            }
          }
        }
        live_rows += rows;
        CHECK(found.rows[q] == rows);
        for (size_t k = 0; k < 4; ++k) {
          INFO(backend->name() << ", mask " << mask << ", part " << q << " " << k);
          const auto count = static_cast<double>(rows);
          CHECK(alike(found.difference[q * 4 + k], sums[k] / count));
          CHECK(alike(found.absolute[q * 4 + k], sizes[k] / count));
          if (rows > 0) most = std::max(most, std::abs(sums[k] / count));
        }
      }
      CHECK(most > 0.01);
      CHECK((live_rows < kTokens) == (mask == "masked_rows"));
    }
  }
}

TEST_CASE("the mean row of differences is that of the live rows, to the same bits") {
  for (const auto& backend : two_backends()) {
    const DoublePair pair("masked_rows");
    MeanDifference sink, slow;
    compare(pair, *backend, sink, int64_t{64} << 20, 4);
    std::vector<double> sums(kTokens, 0);
    int64_t rows = 0;
    for (size_t i = 0; i < kTokens; ++i) {
      if (!pair.live[i]) continue;
      ++rows;
      for (size_t j = 0; j < kTokens; ++j) sums[j] += pair.rows[i][j];
    }
    CHECK(sink.counted() == rows);
    CHECK(rows < kTokens);
    const std::vector<float> mean = sink.take();
    double most = 0;
    for (size_t j = 0; j < kTokens; ++j) {
      CHECK(alike(mean[j], sums[j] / static_cast<double>(rows)));
      most = std::max(most, std::abs(sums[j]));
    }
    CHECK(most / static_cast<double>(rows) > 1e-3);
    compare(pair, *backend, slow, least_memory(pair, *backend, slow), 1);
    CHECK(slow.take() == mean);
  }
}

TEST_CASE("a side gives the keys of its runs with the weights that they have among all") {
  const DoublePair pair("none");
  const std::vector<int64_t> queries{5, 30, 63};
  HeadTask task = whole_map(pair.a.problem(), 0);
  task.row_list = queries;
  for (const auto& backend : two_backends()) {
    ComputedMap side(task, {{{2, 5}, {40, 44}}, Quantity::weights}, *backend);
    CHECK(side.rows() == 3);
    CHECK(side.keys() == 7);
    side.prepare();
    const auto rows = side.reader(3);
    std::vector<std::byte> workspace(static_cast<size_t>(side.workspace_bytes(3)) + 64);
    const size_t offset = (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64) % 64;
    rows->read({0, 3}, std::span(workspace).subspan(offset));
    for (size_t i = 0; i < queries.size(); ++i) {
      const auto expected = pair.a.row(0, 0, queries[i]);
      size_t at = 0;
      for (const size_t key : {2, 3, 4, 40, 41, 42, 43}) {
        const double got = rows->row(static_cast<int64_t>(i))[at++];
        CHECK(std::abs(got - expected.weights[key]) < 1e-5 * expected.weights[key] + 1e-8);
      }
      CHECK(std::abs(rows->lse(static_cast<int64_t>(i)) - expected.lse) < 1e-4);
    }
  }
}
