#include <deque>
#include <numeric>

#include "core/products/rollout/rollout_steps.h"
#include "tests/core/products/product_case.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kTokens = 64;

/// The oracle's call, recorded as one of a layer.
AttentionProblem at_layer(const Oracle& oracle, CallId id, const Mask& mask) {
  AttentionProblem::Parts parts;
  parts.q = oracle.problem().q();
  parts.k = oracle.problem().k();
  parts.score = oracle.problem().score();
  parts.mask = mask;
  parts.sinks = oracle.problem().sinks();
  parts.query_tokens = oracle.problem().query_tokens();
  parts.key_tokens = oracle.problem().key_tokens();
  parts.name = "layer " + std::to_string(id.layer);
  parts.id = std::move(id);
  return AttentionProblem::make(std::move(parts));
}

CallId joint(int64_t layer) { return {4, layer, CallKind::joint, {"all"}}; }

/// Three layers behind each other, the second of them under a mask. With sinks the rows of the
/// first two have one, and the second has rows without keys.
struct Layers {
  explicit Layers(bool sinks = false) {
    for (const auto& [layer, mask] : {std::pair<int64_t, std::string_view>{0, "none"},
                                      {7, sinks ? "masked_rows" : "causal"},
                                      {9, "none"}}) {
      AttentionCase c = joint_case(mask, ScoreFunction::softmax, static_cast<unsigned>(layer));
      if (sinks && layer < 9) c.sinks = layer == 0 ? "query" : "head";
      oracles.emplace_back(c);
      problems.push_back(at_layer(oracles.back(), joint(layer), oracles.back().problem().mask()));
    }
  }
  std::vector<CallHeads> calls(const std::vector<int64_t>& heads) const {
    std::vector<CallHeads> calls;
    for (const AttentionProblem& problem : problems) calls.push_back({&problem, {0}, heads});
    return calls;
  }
  /// The whole product of I + A with rows that are divided by their sums, a mean over heads, last
  /// layer leftmost: [outputs, inputs].
  std::vector<double> product(const std::vector<int64_t>& heads) const {
    std::vector<double> result(kTokens * kTokens);
    for (size_t i = 0; i < kTokens; ++i) result[i * kTokens + i] = 1;
    for (const Oracle& oracle : oracles) {
      std::vector<double> next(result.size());
      for (size_t i = 0; i < kTokens; ++i) {
        std::vector<double> row(kTokens);
        for (const int64_t head : heads) {
          const auto weights = oracle.row(0, head, static_cast<int64_t>(i)).weights;
          const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
          const bool has_sink = !oracle.problem().sinks().is_none();
          const double all = static_cast<double>(heads.size()) * (has_sink ? 1 + sum : 2);
          for (size_t m = 0; m < kTokens; ++m) row[m] += (weights[m] + (m == i ? 1 : 0)) / all;
        }
        for (size_t m = 0; m < kTokens; ++m) {
          for (size_t j = 0; j < kTokens; ++j) {
            next[i * kTokens + j] += row[m] * result[m * kTokens + j];
          }
        }
      }
      result = std::move(next);
    }
    return result;
  }

  std::deque<Oracle> oracles;
  std::deque<AttentionProblem> problems;
};

std::string refusal(const std::vector<CallHeads>& calls, const std::vector<std::string>& parts) {
  return refused([&] { make_rollout_steps(calls); }, ErrorCode::usage, parts);
}

}  // namespace

TEST_CASE("influence at every token is a row, or a column, of the product of all layers") {
  const bool sinks = GENERATE(false, true);
  const Layers layers(sinks);
  const ChosenTokens one = choose_tokens({37}, {}, layers.problems.front().key_tokens());
  const ChosenTokens some = choose_tokens({9, 10, 11}, std::vector<IndexRange>{{1, 2}},
                                          layers.problems.front().key_tokens());
  for (const auto& backend : two_backends()) {
    for (const auto& heads : {std::vector<int64_t>{0, 1, 2, 3}, {1, 3}, {2}}) {
      const auto product = layers.product(heads);
      const std::vector<RolloutStep> steps = make_rollout_steps(layers.calls(heads));
      REQUIRE(steps.size() == 3);
      CHECK(steps[1].layer() == 7);
      CHECK(steps[1].tasks.size() == heads.size());
      for (const ChosenTokens& start : {one, some}) {
        for (const auto direction : {RolloutDirection::to_inputs, RolloutDirection::to_outputs}) {
          const bool inputs = direction == RolloutDirection::to_inputs;
          MemoryBudget budget(int64_t{1} << 24);
          double progress = 0;
          const auto influence =
              follow_influence(steps, start_influence(start, kTokens), direction, *backend, budget,
                               {{}, [&](double done) { progress = done; }});
          INFO(backend->name() << " heads " << heads.size() << " start " << start.tokens.size()
                               << (inputs ? " to inputs" : " to outputs"));
          std::vector<double> expected(kTokens);
          for (const int64_t token : start.tokens) {
            for (int64_t j = 0; j < kTokens; ++j) {
              const int64_t at = inputs ? token * kTokens + j : j * kTokens + token;
              expected[static_cast<size_t>(j)] +=
                  product[static_cast<size_t>(at)] / static_cast<double>(start.tokens.size());
            }
          }
          CHECK(count_wrong({influence.begin(), influence.end()}, expected) == 0);
          const double sum = std::accumulate(influence.begin(), influence.end(), 0.0);
          if (inputs) CHECK(sum == Approx(1).epsilon(1e-5));
          CHECK(progress == 3);
          CHECK(budget.used() == 0);
        }
      }
    }
  }
}

TEST_CASE("a rollout's bits depend neither on memory nor on threads") {
  const Layers layers(GENERATE(false, true));
  const std::vector<RolloutStep> steps = make_rollout_steps(layers.calls({0, 1, 2, 3}));
  const ChosenTokens start = choose_tokens({5}, {}, layers.problems.front().key_tokens());
  for (const auto direction : {RolloutDirection::to_inputs, RolloutDirection::to_outputs}) {
    std::vector<std::vector<double>> results;
    for (const auto& [bytes, threads] :
         {std::pair<int64_t, int>{int64_t{1} << 24, 1}, {int64_t{1} << 24, 4}, {5 << 18, 1}}) {
      const auto backend = std::move(two_backends(threads)[1]);
      MemoryBudget budget(bytes);
      results.push_back(follow_influence(steps, start_influence(start, kTokens), direction,
                                         *backend, budget, {}));
      CHECK(results.back() == results.front());
    }
  }
}

TEST_CASE("calls that cannot follow one another are refused with the reason") {
  const Oracle oracle(joint_case());
  const Oracle other([] {
    AttentionCase c = joint_case();
    c.grid = {3, 5, 4};
    return c;
  }());
  const Oracle sigmoid(joint_case("none", ScoreFunction::sigmoid));
  const AttentionProblem first = at_layer(oracle, joint(1), {});
  const AttentionProblem again = at_layer(oracle, joint(1), {});
  const AttentionProblem cross = at_layer(oracle, {4, 2, CallKind::cross, {"all"}}, {});
  const AttentionProblem step = at_layer(oracle, {5, 2, CallKind::joint, {"all"}}, {});
  const AttentionProblem branch = at_layer(oracle, {4, 2, CallKind::joint, {"cond"}}, {});
  const AttentionProblem shape = at_layer(other, joint(2), {});
  const AttentionProblem open = at_layer(sigmoid, joint(2), {});
  const CallHeads good{&first, {0}, {0}};
  CHECK(refusal({good, {&again, {0}, {0}}}, {"layer 1 has several calls"}) == "");
  CHECK(refusal({good, {&cross, {0}, {0}}}, {"rollout: layer 2: is cross attention"}) == "");
  CHECK(refusal({good, {&step, {0}, {0}}}, {"steps 4 and 5 are selected"}) == "");
  CHECK(refusal({good, {&branch, {0}, {0}}}, {"branches all and cond are selected"}) == "");
  CHECK(refusal({good, {&shape, {0}, {0}}}, {"has other tokens than layer 1"}) == "");
  CHECK(refusal({{&open, {0}, {0}}}, {"sigmoid"}) == "");
  CHECK(refusal({{&first, {0, 1}, {0}}}, {"2 batch items are selected"}) == "");
  CHECK(refusal({{&first, {0}, std::vector<int64_t>(2049, 0)}}, {"2049 heads", "limit 2048"}) ==
        "");
}

TEST_CASE("a stop interrupts a rollout") {
  const Layers layers;
  const auto backend = std::move(two_backends()[0]);
  MemoryBudget budget(int64_t{1} << 24);
  std::stop_source stop;
  stop.request_stop();
  CHECK(refused(
            [&] {
              follow_influence(make_rollout_steps(layers.calls({0})),
                               std::vector<double>(kTokens, 1.0 / kTokens),
                               RolloutDirection::to_outputs, *backend, budget,
                               {stop.get_token(), {}});
            },
            ErrorCode::interrupted, {}) == "");
}
