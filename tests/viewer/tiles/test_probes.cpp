// Entries that are asked for and found later, as tiles and lines are.
#include <chrono>
#include <future>

#include "core/base/error.h"
#include "tests/support/backend/fake_backend.h"
#include "tests/support/catch.h"
#include "tests/support/service_harness.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr HeadId kHead{0, 1, 1};
const ProbeRequest kProbe{kHead, 2000, 17};

/// A fake backend whose calls wait until the gate is opened.
class Gate {
 public:
  std::unique_ptr<FakeBackend> backend(FakeCall blocked) {
    auto backend = std::make_unique<FakeBackend>();
    backend->num_workers = 2;
    backend->on_call = [this, blocked](FakeCall call) {
      if (call != blocked) return;
      reached_.store(true);
      reached_.notify_all();
      opened_.wait();
    };
    return backend;
  }
  void wait_until_reached() { reached_.wait(false); }
  void open() { open_.set_value(); }

 private:
  std::atomic<bool> reached_{false};
  std::promise<void> open_;
  std::shared_future<void> opened_{open_.get_future()};
};

WishesByKind wish_for(const ProbeRequest& probe) {
  WishesByKind wishes;
  wishes.probes = {probe};
  return wishes;
}

}  // namespace

TEST_CASE("asking for an entry waits neither for a head to be bound nor for arithmetic") {
  const AttentionProblem problem = rule_problem(2, 2, 3000, 3000, 16);
  for (const FakeCall blocked : {FakeCall::bind, FakeCall::row_norms, FakeCall::emit}) {
    INFO("blocked: " << static_cast<int>(blocked));
    Gate gate;
    ServiceHarness harness(problem, ServiceHarness::small_settings(), gate.backend(blocked));
    // Would not come back if it waited.
    harness.want(wish_for(kProbe));
    gate.wait_until_reached();
    CHECK_FALSE(find(harness.service(), kProbe));
    harness.want(wish_for({kHead, 2000, 18}));
    CHECK_FALSE(find(harness.service(), kProbe));
    CHECK(harness.service().status().busy);
    harness.want(wish_for(kProbe));
    gate.open();
    REQUIRE(harness.wait([&] { return find(harness.service(), kProbe) != nullptr; }));
    const ProbedEntry entry = *find(harness.service(), kProbe);
    CHECK(entry.query == 2000);
    CHECK(entry.key == 17);
    CHECK(entry.weight == static_cast<double>(fake_weight(1, 1, 2000, 17)));
    CHECK(entry.logit == static_cast<double>(fake_logit(1, 1, 2000, 17)));
    REQUIRE(harness.wait_idle());
  }
}

TEST_CASE("an entry is computed once, and the last ones stay") {
  const AttentionProblem problem = rule_problem(2, 2, 3000, 3000, 16);
  auto owned = std::make_unique<FakeBackend>();
  const FakeBackend& backend = *owned;
  ServiceHarness harness(problem, ServiceHarness::small_settings(), std::move(owned));
  REQUIRE(harness.probe(kProbe));
  const int64_t emitted = backend.calls(FakeCall::emit);
  for (int64_t key = 0; key < 30; ++key) REQUIRE(harness.probe({kHead, 5, key}));
  REQUIRE(harness.probe(kProbe));
  CHECK(backend.calls(FakeCall::emit) == emitted * 31);
  harness.want({});
  CHECK(find(harness.service(), kProbe));
}

TEST_CASE("an entry that cannot be computed is told as a problem") {
  const AttentionProblem problem = rule_problem(2, 2, 3000, 3000, 16);
  std::atomic<bool> broken{true};
  auto backend = std::make_unique<FakeBackend>();
  backend->on_call = [&](FakeCall call) {
    if (broken && call == FakeCall::emit) throw Error(ErrorCode::file, "q: the file is shorter");
  };
  ServiceHarness harness(problem, ServiceHarness::small_settings(), std::move(backend));
  CHECK_FALSE(harness.probe(kProbe));
  CHECK(harness.service().status().problem == "q: the file is shorter");
  // The worker that failed has its buffers for the next piece.
  broken = false;
  harness.want({});
  CHECK(harness.probe(kProbe));
  CHECK(harness.service().status().problem.empty());
}
