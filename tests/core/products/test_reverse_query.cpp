#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "core/products/kept_norms.h"
#include "core/products/key_runs.h"
#include "core/products/reverse_query.h"
#include "core/products/value_norms.h"
#include "tests/core/products/product_case.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// Keeps norms in memory, and counts.
class MemoryStore : public NormStore {
 public:
  std::string key(const NormSource& source, std::string_view backend, std::stop_token) override {
    return std::string(backend) + " " + source.problem->mask().describe() + " " +
           std::to_string(source.batch) + " " + std::to_string(source.head);
  }
  bool load(const std::string& key, std::span<RowNorm> norms) const override {
    const auto found = kept.find(key);
    if (found == kept.end() || found->second.size() != norms.size()) return false;
    std::copy(found->second.begin(), found->second.end(), norms.begin());
    return true;
  }
  std::optional<std::string> store(const std::string& key,
                                   std::span<const RowNorm> norms) override {
    if (full) return "no place";
    kept[key].assign(norms.begin(), norms.end());
    return std::nullopt;
  }

  std::map<std::string, std::vector<RowNorm>> kept;
  bool full = false;
};

/// Which keys share their rows' sums with `key`, by the definition of the domain.
bool shares_sums(SoftmaxDomain domain, int64_t key, int64_t other) {
  const auto frame = [](int64_t k) { return (k - 4) / 20; };
  switch (domain) {
    case SoftmaxDomain::all:
      return true;
    case SoftmaxDomain::video:
      return other >= 4;
    case SoftmaxDomain::text:
      return other < 4;
    case SoftmaxDomain::frame:
      return other >= 4 && frame(other) == frame(key);
  }
  return false;
}

/// Σ factor · P over the chosen keys, in double, for every query.
std::vector<double> column(const Oracle& oracle, const ReverseTask& task, SoftmaxDomain domain) {
  std::vector<double> values;
  for (int64_t i = 0; i < 64; ++i) {
    const std::vector<double> row = oracle.row(task.batch, task.head, i).weights;
    double value = 0;
    for (size_t n = 0; n < task.keys.size(); ++n) {
      double sum = 1;
      if (domain != SoftmaxDomain::all) {
        sum = 0;
        for (int64_t j = 0; j < 64; ++j) {
          if (shares_sums(domain, task.keys[n], j)) sum += row[static_cast<size_t>(j)];
        }
      }
      if (sum > 0) value += task.factors[n] * row[static_cast<size_t>(task.keys[n])] / sum;
    }
    values.push_back(value);
  }
  return values;
}

struct Choice {
  std::vector<int64_t> keys;
  std::vector<double> factors;
  std::set<SoftmaxDomain> domains;
};

std::vector<Choice> choices() {
  const auto all = SoftmaxDomain::all, video = SoftmaxDomain::video, text = SoftmaxDomain::text,
             frame = SoftmaxDomain::frame;
  return {{{37}, {1}, {all, video, frame}},
          {{48, 49}, {0.5, 0.5}, {all, video, frame}},
          // Keys of several frames, each with its own frame's sums.
          {{19, 39, 59}, {0.5, 2, 0.25}, {all, video, frame}},
          {{1, 2}, {1, 1}, {all, text}},
          {{2, 4, 63}, {0.5, 0.25, 0.25}, {all}}};
}

}  // namespace

TEST_CASE("every entry of a key's column, in every domain, under masks and for every score") {
  for (const auto& [mask, score] :
       {std::pair<std::string_view, ScoreFunction>{"none", ScoreFunction::softmax},
        {"causal", ScoreFunction::softmax},
        {"window", ScoreFunction::softmax},
        {"masked_rows", ScoreFunction::softmax},
        {"dense_float", ScoreFunction::softmax},
        {"causal", ScoreFunction::sigmoid},
        {"none", ScoreFunction::linear_elu1}}) {
    const Oracle oracle(joint_case(mask, score));
    for (const auto& backend : two_backends()) {
      for (const Choice& choice : choices()) {
        std::vector<ReverseTask> tasks;
        for (const int64_t head : {0, 3}) {
          tasks.push_back({&oracle.problem(), nullptr, 0, head, choice.keys, choice.factors});
        }
        for (const SoftmaxDomain domain : choice.domains) {
          INFO(oracle.text() << " " << backend->name() << " key " << choice.keys.front() << " of "
                             << choice.keys.size() << ", domain " << domain_name(domain));
          MemoryBudget budget(int64_t{1} << 24);
          ReverseQuery query(tasks, {domain}, *backend, budget);
          const auto values = query.run(nullptr, {});
          REQUIRE(values.size() == 2);
          for (size_t t = 0; t < 2; ++t) {
            CHECK(count_wrong(values[t], column(oracle, tasks[t], domain)) == 0);
          }
          CHECK(query.kept() == 0);
        }
      }
    }
  }
}

TEST_CASE("norms are kept in the store and taken from it, with the same bits") {
  const Oracle oracle(joint_case("causal"));
  const auto backend = std::move(two_backends()[1]);
  const std::vector<ReverseTask> tasks{{&oracle.problem(), nullptr, 0, 1, {10, 30}, {1, 1}},
                                       {&oracle.problem(), nullptr, 0, 2, {10, 30}, {1, 1}}};
  MemoryBudget budget(int64_t{1} << 24);
  MemoryStore store;
  const auto run = [&](SoftmaxDomain domain, int64_t kept, int64_t normed) {
    ReverseQuery query(tasks, {domain}, *backend, budget);
    double progress = 0;
    const auto values = query.run(&store, {{}, [&](double steps) { progress = steps; }});
    CHECK(query.kept() == kept);
    CHECK(query.normed() == normed);
    CHECK(query.steps() == normed);
    CHECK(progress == static_cast<double>(normed));
    CHECK(query.store_problem().empty());
    return values;
  };
  const auto first = run(SoftmaxDomain::all, 0, 2);
  CHECK(store.kept.size() == 2);
  CHECK(run(SoftmaxDomain::all, 2, 2) == first);
  // Two frames have sums of their own in each head.
  const auto frames = run(SoftmaxDomain::frame, 0, 4);
  CHECK(store.kept.size() == 6);
  CHECK(run(SoftmaxDomain::frame, 4, 4) == frames);
}

TEST_CASE("norms that are not of the map are not believed, are said, and are replaced") {
  const Oracle oracle(joint_case("causal"));
  const auto backend = std::move(two_backends()[1]);
  const std::vector<ReverseTask> tasks{{&oracle.problem(), nullptr, 0, 1, {10, 30}, {1, 1}}};
  MemoryBudget budget(int64_t{1} << 24);
  MemoryStore store;
  const auto run = [&](int64_t kept, std::string_view problem) {
    ReverseQuery query(tasks, {}, *backend, budget);
    const auto values = query.run(&store, {});
    CHECK(query.kept() == kept);
    CHECK(query.store_problem() == problem);
    return values;
  };
  const auto right = run(0, "");
  std::vector<RowNorm>& norms = store.kept.begin()->second;
  const std::vector<RowNorm> good = norms;
  // Twice the sums, half of every weight; the last bit; rows masked that are not.
  const std::function<void(RowNorm&)> changes[] = {
      [](RowNorm& norm) { ++norm.exponent; },
      [](RowNorm& norm) { norm.sum = std::nextafter(norm.sum, 1.5); },
      [](RowNorm& norm) { norm = {}; },
  };
  for (const auto& change : changes) {
    for (RowNorm& norm : norms) change(norm);
    CHECK(run(0, kForeignNorms) == right);
    CHECK(run(1, "") == right);
    for (size_t i = 0; i < good.size(); ++i) {
      CHECK((norms[i].sum == good[i].sum && norms[i].exponent == good[i].exponent));
    }
  }
}

TEST_CASE("a store that takes nothing is said, and scores without norms ask none") {
  const auto backend = std::move(two_backends()[0]);
  MemoryBudget budget(int64_t{1} << 24);
  MemoryStore store;
  store.full = true;
  const Oracle oracle(joint_case());
  const std::vector<ReverseTask> tasks{{&oracle.problem(), nullptr, 0, 0, {9}, {1}}};
  ReverseQuery query(tasks, {}, *backend, budget);
  CHECK(count_wrong(query.run(&store, {}).front(), column(oracle, tasks[0], SoftmaxDomain::all)) ==
        0);
  CHECK(query.store_problem() == "row sums could not be kept: no place");
  store.full = false;
  const Oracle sigmoid(joint_case("none", ScoreFunction::sigmoid));
  const std::vector<ReverseTask> without{{&sigmoid.problem(), nullptr, 0, 0, {9}, {1}}};
  ReverseQuery plain(without, {}, *backend, budget);
  plain.run(&store, {});
  CHECK(plain.normed() == 0);
  CHECK(store.kept.empty());
}

TEST_CASE("a key outside the domain is refused, and a stop interrupts") {
  const Oracle oracle(joint_case());
  const auto backend = std::move(two_backends()[0]);
  MemoryBudget budget(int64_t{1} << 24);
  const auto refusal = [&](int64_t key, SoftmaxDomain domain, const std::string& part) {
    const std::vector<ReverseTask> tasks{{&oracle.problem(), nullptr, 0, 0, {key}, {1}}};
    return refused([&] { ReverseQuery(tasks, {domain}, *backend, budget); }, ErrorCode::usage,
                   {part, "choose keys of the domain"});
  };
  CHECK(refusal(4, SoftmaxDomain::text, "--domain text: key 4 of case is video") == "");
  CHECK(refusal(3, SoftmaxDomain::video, "--domain video: key 3 of case is text") == "");
  CHECK(refusal(0, SoftmaxDomain::frame, "is text") == "");
  const std::vector<ReverseTask> tasks{{&oracle.problem(), nullptr, 0, 0, {9}, {1}}};
  std::stop_source stop;
  stop.request_stop();
  ReverseQuery query(tasks, {}, *backend, budget);
  CHECK(refused(
            [&] {
              query.run(nullptr, {stop.get_token(), {}});
            },
            ErrorCode::interrupted, {}) == "");
}

TEST_CASE("results depend neither on memory nor on threads, and are reserved") {
  AttentionCase c = joint_case("window");
  c.shape.queries = c.shape.keys = 604;
  c.grid = {6, 10, 10};
  const Oracle oracle(c);
  const std::vector<ReverseTask> tasks{
      {&oracle.problem(), nullptr, 0, 1, {4, 5, 300, 603}, {0.25, 0.25, 0.25, 0.25}}};
  std::vector<std::vector<float>> results;
  for (const auto& [bytes, threads] :
       {std::pair<int64_t, int>{int64_t{1} << 26, 1}, {int64_t{1} << 26, 4}, {6 << 18, 2}}) {
    const auto backend = std::move(two_backends(threads)[1]);
    MemoryBudget budget(bytes);
    ReverseQuery query(tasks, {SoftmaxDomain::frame, threads}, *backend, budget);
    CHECK(budget.used() > 604 * static_cast<int64_t>(sizeof(float)));
    results.push_back(query.run(nullptr, {}).front());
    CHECK(results.back() == results.front());
  }
}

TEST_CASE("chosen keys are computed in runs of neighbours") {
  const std::vector<int64_t> keys{3, 5, 261, 518, 5000, 5001, 9095, 9096};
  const std::vector<KeyRun> runs = key_runs(keys, 0, keys.size());
  std::vector<std::vector<int64_t>> again;
  for (const KeyRun& run : runs) {
    CHECK(run.keys.size() <= kMostRunKeys);
    std::vector<int64_t> chosen;
    for (const int64_t column : run.columns) chosen.push_back(run.keys.begin + column);
    CHECK(chosen.front() == run.keys.begin);
    CHECK(chosen.back() + 1 == run.keys.end);
    CHECK(keys[run.first] == chosen.front());
    again.push_back(chosen);
  }
  CHECK(again == std::vector<std::vector<int64_t>>{{3, 5, 261}, {518}, {5000, 5001}, {9095, 9096}});
  // Neighbours beyond the most keys of a run begin another.
  std::vector<int64_t> many;
  for (int64_t key = 10; key < 10 + 2 * kMostRunKeys + 1; ++key) many.push_back(key);
  REQUIRE(key_runs(many, 0, many.size()).size() == 3);
  CHECK(key_runs(many, 1, 3).front().keys == IndexRange{11, 13});
  const std::vector<float> row{1, 2, 4, 8};
  const KeyRun run = make_key_run(keys, 1, 3, {3, 262});
  CHECK(run.columns == std::vector<int64_t>{2, 258});
  const std::vector<double> factors{100, 0.5, 3};
  CHECK(weigh_keys(row.data(), {{0, 4}, 1, {0, 3}}, factors) == 0.5 * 1 + 3 * 8);
}

TEST_CASE("weights are multiplied by the norms of the value rows that heads share") {
  AttentionCase c = joint_case();
  c.value_width = 6;
  const Oracle oracle(c);
  const auto norm = [&](int64_t head, int64_t key) {
    double sum = 0;
    for (int64_t channel = 0; channel < 6; ++channel) {
      sum += oracle.value(0, head, key, channel) * oracle.value(0, head, key, channel);
    }
    return std::sqrt(sum);
  };
  const std::vector<double> norms = value_norms(oracle.problem(), 0, 3, {5, 64});
  REQUIRE(norms.size() == 59);
  for (int64_t key = 5; key < 64; ++key) {
    CHECK(norms[static_cast<size_t>(key - 5)] == Approx(norm(3, key)).epsilon(1e-12));
  }
  MemoryBudget budget(1 << 16);
  std::vector<HeadTask> tasks;
  std::vector<std::vector<float>> values;
  for (int64_t head = 0; head < 4; ++head) {
    tasks.push_back(whole_map(oracle.problem(), head));
    values.emplace_back(64, static_cast<float>(head + 1));
  }
  weigh_by_values(tasks, values, budget);
  for (int64_t head = 0; head < 4; ++head) {
    std::vector<double> expected;
    for (int64_t key = 0; key < 64; ++key) {
      expected.push_back(static_cast<double>(head + 1) * norm(head, key));
    }
    CHECK(count_wrong(values[static_cast<size_t>(head)], expected) == 0);
  }
  CHECK(budget.used() == 0);
  const Oracle without(joint_case());
  CHECK(refused(
            [&] {
              value_norms(without.problem(), 0, 0, {0, 1});
            },
            ErrorCode::usage, {"--weighting value", "has no v"}) == "");
}
