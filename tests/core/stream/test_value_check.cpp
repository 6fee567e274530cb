// NaN and Inf are found by any number of threads, and the first of them is named.
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/stream/few_rows.h"
#include "core/stream/value_check.h"
#include "core/tensor/memory_tensor.h"
#include "tests/support/backend/fake_backend.h"
#include "tests/support/catch.h"

using namespace attnscope;
using attnscope::test::FakeBackend;

namespace {

constexpr int64_t kHeads = 4, kTokens = 4096, kWidth = 64;

struct Place {
  int64_t head, token;
  float value;
};

HeadTensor tensor(const std::string& name, const std::vector<Place>& places) {
  std::vector<float> numbers(kHeads * kTokens * kWidth, 0.5f);
  for (const Place& place : places) {
    numbers[static_cast<size_t>((place.head * kTokens + place.token) * kWidth + 7)] = place.value;
  }
  std::vector<std::byte> bytes(numbers.size() * sizeof(float));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return HeadTensor(
      std::make_shared<MemoryTensor>(
          name, DType::f32, std::vector<int64_t>{1, kHeads, kTokens, kWidth}, std::move(bytes)),
      Layout::bhsd);
}

AttentionProblem problem_of(HeadTensor q, HeadTensor k, HeadTensor v) {
  AttentionProblem::Parts parts;
  parts.q = std::move(q);
  parts.k = std::move(k);
  parts.v = std::move(v);
  return AttentionProblem::make(std::move(parts));
}

/// Its heads of up to kRows rows refuse keys that are not finite.
class RefusingBackend : public FakeBackend, public FewRowBackend {
 public:
  static constexpr int64_t kRows = 5;

  int64_t few_rows(const AttentionProblem&) const override { return kRows; }
  BindCost bind_cost_for_few(const AttentionProblem& problem, int64_t) const override {
    return bind_cost(problem);
  }
  std::unique_ptr<BoundHead> bind_for_few(const AttentionProblem& problem, int64_t batch,
                                          int64_t head) const override {
    return bind(problem, batch, head);
  }
  bool refuses_bad_keys(const AttentionProblem&) const override { return true; }
};

/// The message that the scan of all heads throws; empty where it throws none.
std::string failure(const AttentionProblem& problem, const ValueScan& scan,
                    const std::stop_token& stop = {}, int64_t rows = kTokens) {
  std::vector<HeadTask> tasks;
  for (int64_t head = 0; head < kHeads; ++head) {
    tasks.push_back({&problem, 0, head, {0, rows}, {}, {0, kTokens}});
  }
  try {
    check_values(tasks, stop, scan);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInf = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("the first NaN or Inf in the order of the heads is named, by any number of threads") {
  const AttentionProblem late = problem_of(tensor("q", {{2, 0, kNan}, {3, 5, kNan}}),
                                           tensor("k", {{1, 4000, -kInf}, {2, 3, kNan}}), {});
  const AttentionProblem last = problem_of(tensor("q", {}), tensor("k", {{3, 4095, kNan}}), {});
  for (const int threads : {1, 2, 4, 64}) {
    INFO(threads);
    for (int round = 0; round < 5; ++round) {
      CHECK(failure(late, {.threads = threads}) ==
            "k: batch 0, head 1, token 4000, channel 7 is -inf (expected finite numbers)");
      CHECK(failure(last, {.threads = threads}) ==
            "k: batch 0, head 3, token 4095, channel 7 is NaN (expected finite numbers)");
    }
  }
}

TEST_CASE("keys of few rows are left to heads that refuse them, unless something fails") {
  const RefusingBackend backend;
  const AttentionProblem bad_keys =
      problem_of(tensor("q", {}), tensor("k", {{1, 4000, -kInf}}), tensor("v", {}));
  const AttentionProblem bad_query =
      problem_of(tensor("q", {{2, 4, kNan}}), tensor("k", {{1, 4000, -kInf}, {2, 3, kNan}}), {});
  const AttentionProblem bad_first =
      problem_of(tensor("q", {{0, 4, kNan}}), tensor("k", {{1, 4000, -kInf}}), {});
  const std::string key =
      "k: batch 0, head 1, token 4000, channel 7 is -inf (expected finite numbers)";
  for (const int threads : {1, 2, 64}) {
    const ValueScan few{.threads = threads, .few_rows_of = &backend};
    const int64_t rows = RefusingBackend::kRows;
    CHECK(failure(bad_keys, few, {}, rows).empty());
    CHECK(failure(bad_keys, few, {}, rows + 1) == key);
    CHECK(failure(bad_keys, {.threads = threads}, {}, rows) == key);
    // With V they are bound for outputs.
    CHECK(failure(bad_keys, {true, threads, &backend}, {}, rows) == key);
    // Head 1 comes before the q of head 2, but not before that of head 0.
    CHECK(failure(bad_query, few, {}, rows) == key);
    CHECK(failure(bad_first, few, {}, rows) ==
          "q: batch 0, head 0, token 4, channel 7 is NaN (expected finite numbers)");
  }
}

TEST_CASE("of q few rows have none scanned but themselves, on every backend") {
  const RefusingBackend backend;
  const AttentionProblem problem =
      problem_of(tensor("q", {{0, 8, kNan}, {0, 30, kNan}}), tensor("k", {}), {});
  const std::vector<int64_t> beside{7, 9, 10, 29, 31};
  const std::vector<int64_t> last{7, 9, 10, 30};
  for (const int threads : {1, 64}) {
    for (const TileBackend* few_rows_of :
         {static_cast<const TileBackend*>(&backend), static_cast<const TileBackend*>(nullptr)}) {
      const ValueScan few{.threads = threads, .few_rows_of = few_rows_of};
      const auto scan = [&](const HeadTask& task) { check_values({&task, 1}, {}, few); };
      scan({&problem, 0, 0, {9, 25}, {}, {0, kTokens}});
      scan({&problem, 0, 0, {}, beside, {0, kTokens}});
      CHECK_THROWS_WITH(scan({&problem, 0, 0, {}, last, {0, kTokens}}),
                        "q: batch 0, head 0, token 30, channel 7 is NaN (expected finite numbers)");
      CHECK_THROWS_WITH(scan({&problem, 0, 0, {5, 9}, {}, {0, kTokens}}),
                        "q: batch 0, head 0, token 8, channel 7 is NaN (expected finite numbers)");
      // More rows than these have all of q scanned.
      CHECK_THROWS_WITH(scan({&problem, 0, 0, {9, 26}, {}, {0, kTokens}}),
                        "q: batch 0, head 0, token 8, channel 7 is NaN (expected finite numbers)");
    }
  }
}

TEST_CASE("v is scanned where it is asked for, and a stop ends the scan") {
  const AttentionProblem problem =
      problem_of(tensor("q", {}), tensor("k", {}), tensor("v", {{2, 1, kInf}}));
  std::stop_source stopped;
  stopped.request_stop();
  for (const int threads : {1, 4}) {
    CHECK(failure(problem, {.threads = threads}).empty());
    CHECK(failure(problem, {.with_values = true, .threads = threads}) ==
          "v: batch 0, head 2, token 1, channel 7 is +inf (expected finite numbers)");
    CHECK(failure(problem, {.threads = threads}, stopped.get_token()) == "interrupted");
  }
}
