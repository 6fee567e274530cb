#include <atomic>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/stream/logit_check.h"
#include "kernels/backend_factory.h"
#include "tests/support/backend/forwarding_backend.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kRows = 300, kKeys = 400, kWidth = 8;

/// Tells which rows' norms it was asked for.
class WatchedBackend : public ForwardingBackend {
 public:
  WatchedBackend() : ForwardingBackend(make_backend(BackendKind::cpu, {.threads = 1})) {}
  mutable std::set<int64_t> rows;
  mutable std::atomic<int> binds{0};

 protected:
  std::unique_ptr<BoundHead> wrap(std::unique_ptr<BoundHead> head) const override {
    class Watched : public ForwardingHead {
     public:
      Watched(std::unique_ptr<BoundHead> inner, std::set<int64_t>& rows)
          : ForwardingHead(std::move(inner)), rows_(rows) {}
      void row_norms(const QueryBlock& queries, std::span<RowNorm> norms,
                     std::span<std::byte> workspace) const override {
        rows_.insert(queries.index.begin(), queries.index.end());
        ForwardingHead::row_norms(queries, norms, workspace);
      }

     private:
      std::set<int64_t>& rows_;
    };
    ++binds;
    return std::make_unique<Watched>(std::move(head), rows);
  }
};

struct Call {
  std::vector<float> q = std::vector<float>(2 * kRows * kWidth, 1.0f);
  std::vector<float> k = std::vector<float>(kKeys * kWidth, 0.5f);
  double scale = 1;
  ScoreFunction score = ScoreFunction::softmax;

  float* query(int64_t head, int64_t row) { return q.data() + (head * kRows + row) * kWidth; }
  AttentionProblem problem() const {
    AttentionProblem::Parts parts;
    parts.q = HeadTensor(make_tensor("q", DType::f32, {1, 2, kRows, kWidth}, q), Layout::bhsd);
    parts.k = HeadTensor(make_tensor("k", DType::f32, {1, 1, kKeys, kWidth}, k), Layout::bhsd);
    parts.scale = scale;
    parts.score = score;
    parts.id.kind = CallKind::cross;
    parts.name = "call";
    return AttentionProblem::make(std::move(parts));
  }
};

/// The message of check_logits for rows [begin, end) of both heads; empty where it finds nothing.
std::string checked(const Call& call, const WatchedBackend& backend, IndexRange rows = {0, kRows},
                    std::stop_token stop = {}) {
  const AttentionProblem problem = call.problem();
  std::vector<HeadTask> tasks;
  for (int64_t head = 0; head < 2; ++head) {
    tasks.push_back({&problem, 0, head, rows, {}, {0, kKeys}});
  }
  MemoryBudget budget(int64_t{1} << 28);
  try {
    check_logits(tasks, backend, budget, std::move(stop));
  } catch (const Error& error) {
    CHECK((error.code() == ErrorCode::value || error.code() == ErrorCode::interrupted));
    return error.what();
  }
  CHECK(budget.used() == 0);
  return "";
}

}  // namespace

TEST_CASE("ordinary rows are not computed to know that their logits are not too large") {
  const WatchedBackend backend;
  CHECK(checked(Call(), backend).empty());
  CHECK(backend.binds == 0);
}

TEST_CASE("rows whose logits may be too large are computed, and no others") {
  Call call;
  SECTION("they are: the error is the backend's") {
    for (int64_t c = 0; c < kWidth; ++c) call.query(1, 77)[c] = 1e7f;
    const WatchedBackend backend;
    CHECK(checked(call, backend).find("call: head 1, query 77: logits are too large") == 0);
    CHECK(backend.rows == std::set<int64_t>{77});
    const WatchedBackend other;
    CHECK(checked(call, other, {0, 77}).empty());
    CHECK(other.binds == 0);
  }
  SECTION("they are not: they cancel out") {
    for (int64_t c = 0; c < kWidth; ++c) {
      call.query(0, 5)[c] = call.query(1, 299)[c] = c % 2 == 0 ? 1e7f : -1e7f;
    }
    const WatchedBackend backend;
    CHECK(checked(call, backend).empty());
    CHECK(backend.rows == std::set<int64_t>{5, 299});
  }
  SECTION("float32 does not hold a sum, though the scale is small") {
    call.scale = 1e-36;
    for (int64_t c = 0; c < kWidth; ++c) call.query(0, 9)[c] = c < 4 ? 3e38f : -3e38f;
    const WatchedBackend backend;
    CHECK(checked(call, backend).find("call: head 0, query 9: ") == 0);
  }
}

TEST_CASE("scores without a softmax are not looked at for too large logits") {
  Call call;
  for (int64_t c = 0; c < kWidth; ++c) call.query(1, 77)[c] = 1e7f;
  call.score = ScoreFunction::sigmoid;
  const WatchedBackend backend;
  CHECK(checked(call, backend).empty());
  CHECK(backend.binds == 0);
}

TEST_CASE("a stop ends the look for too large logits") {
  std::stop_source stop;
  stop.request_stop();
  CHECK(checked(Call(), WatchedBackend(), {0, kRows}, stop.get_token()) == "interrupted");
}
