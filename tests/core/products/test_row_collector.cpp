#include <cmath>

#include "core/products/row_collector.h"
#include "tests/core/products/product_case.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// The keys of each part over which a row is renormalised, by their definition: text is tokens
/// 0 … 3, frame t the 20 tokens from 4 + 20·t on.
std::vector<IndexRange> parts_of(SoftmaxDomain domain) {
  switch (domain) {
    case SoftmaxDomain::all:
      return {};
    case SoftmaxDomain::video:
      return {{4, 64}};
    case SoftmaxDomain::text:
      return {{0, 4}};
    case SoftmaxDomain::frame:
      return {{4, 24}, {24, 44}, {44, 64}};
  }
  return {};
}

std::vector<double> mean_row(const Oracle& oracle, int64_t head, const std::vector<int64_t>& rows,
                             SoftmaxDomain domain) {
  std::vector<double> mean(64, 0.0);
  for (const int64_t i : rows) {
    const std::vector<double> weights = oracle.row(0, head, i).weights;
    std::vector<double> row = domain == SoftmaxDomain::all ? weights : std::vector<double>(64, 0.0);
    for (const IndexRange& part : parts_of(domain)) {
      double sum = 0;
      for (int64_t j = part.begin; j < part.end; ++j) sum += weights[static_cast<size_t>(j)];
      for (int64_t j = part.begin; j < part.end && sum > 0; ++j) {
        row[static_cast<size_t>(j)] = weights[static_cast<size_t>(j)] / sum;
      }
    }
    for (size_t j = 0; j < 64; ++j) mean[j] += row[j] / static_cast<double>(rows.size());
  }
  return mean;
}

}  // namespace

TEST_CASE("the mean of chosen rows in every domain, under masks and for every score") {
  const std::vector<int64_t> rows{0, 3, 17, 18, 63};
  for (const auto& [mask, score] :
       {std::pair<std::string_view, ScoreFunction>{"none", ScoreFunction::softmax},
        {"causal", ScoreFunction::softmax},
        {"masked_rows", ScoreFunction::softmax},
        {"none", ScoreFunction::sigmoid},
        {"none", ScoreFunction::linear_elu1}}) {
    const Oracle oracle(joint_case(mask, score));
    std::vector<HeadTask> tasks{whole_map(oracle.problem(), 1), whole_map(oracle.problem(), 2)};
    for (HeadTask& task : tasks) task.row_list = rows;
    for (const auto& backend : two_backends()) {
      for (const auto domain :
           {SoftmaxDomain::all, SoftmaxDomain::video, SoftmaxDomain::text, SoftmaxDomain::frame}) {
        INFO(oracle.text() << " " << backend->name() << " " << domain_name(domain));
        MemoryBudget budget(int64_t{1} << 24);
        RowCollector collector(tasks, domain, backend->workers(), budget);
        run_tasks(tasks, collector, *backend, budget);
        for (int64_t i = 0; i < 2; ++i) {
          CHECK(count_wrong(collector.take_mean(i), mean_row(oracle, i + 1, rows, domain)) == 0);
          CHECK(std::isnan(collector.lse(i)));
        }
      }
    }
  }
}

TEST_CASE("many rows have one mean whatever the threads; one row has its normaliser") {
  AttentionCase c = joint_case("causal");
  c.shape.queries = c.shape.keys = 304;
  c.grid = {3, 10, 10};
  const Oracle oracle(c);
  std::vector<std::vector<float>> means;
  std::vector<double> expected(304, 0.0);
  for (int64_t i = 0; i < 304; ++i) {
    const auto row = oracle.row(0, 0, i).weights;
    for (size_t j = 0; j < 304; ++j) expected[j] += row[j] / 304;
  }
  const std::vector<HeadTask> tasks{whole_map(oracle.problem(), 0)};
  for (const int threads : {1, 2, 5}) {
    const auto backend = std::move(two_backends(threads)[1]);
    MemoryBudget budget(int64_t{1} << 24);
    RowCollector collector(tasks, SoftmaxDomain::all, backend->workers(), budget);
    run_tasks(tasks, collector, *backend, budget);
    means.push_back(collector.take_mean(0));
    CHECK(means.back() == means.front());
  }
  CHECK(count_wrong(means.front(), expected) == 0);

  const std::vector<int64_t> row{77};
  std::vector<HeadTask> one = tasks;
  one.front().row_list = row;
  const auto backend = std::move(two_backends()[0]);
  MemoryBudget budget(int64_t{1} << 24);
  RowCollector collector(one, SoftmaxDomain::video, 2, budget);
  run_tasks(one, collector, *backend, budget);
  CHECK(collector.lse(0) == Approx(oracle.row(0, 0, 77).lse).epsilon(1e-9));
}

TEST_CASE("domains are read back from their names, and know whose sums a key shares") {
  for (const auto domain :
       {SoftmaxDomain::all, SoftmaxDomain::video, SoftmaxDomain::text, SoftmaxDomain::frame}) {
    CHECK(parse_domain(domain_name(domain)) == domain);
  }
  CHECK(refused([] { parse_domain("vidoe"); }, ErrorCode::usage,
                {"--domain vidoe", "did you mean video"}) == "");
  const TokenGrid grid = TokenGrid::video(64, {3, 4, 5}, 4, TextPlace::start);
  CHECK(domain_of(SoftmaxDomain::all, grid, 2) == IndexRange{0, 64});
  CHECK(domain_of(SoftmaxDomain::video, grid, 4) == IndexRange{4, 64});
  CHECK(domain_of(SoftmaxDomain::video, grid, 3).empty());
  CHECK(domain_of(SoftmaxDomain::text, grid, 3) == IndexRange{0, 4});
  CHECK(domain_of(SoftmaxDomain::text, grid, 4).empty());
  CHECK(domain_of(SoftmaxDomain::frame, grid, 43) == IndexRange{24, 44});
  CHECK(domain_of(SoftmaxDomain::frame, grid, 0).empty());
}
