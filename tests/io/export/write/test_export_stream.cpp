// Exports as they are made: capture's problem, backend, engine, file.
#include <barrier>
#include <cmath>
#include <random>
#include <stop_token>

#include "core/stream/streaming_engine.h"
#include "core/tensor/memory_tensor.h"
#include "io/export/write/hdf5_export.h"
#include "kernels/backend_factory.h"
#include "tests/support/catch.h"
#include "tests/support/export_fixture.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

HeadTensor random_tensor(int64_t heads, int64_t tokens, unsigned seed) {
  constexpr int64_t kHeadDim = 8;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::byte> bytes(static_cast<size_t>(heads * tokens * kHeadDim) * sizeof(float));
  auto* values = reinterpret_cast<float*>(bytes.data());
  for (int64_t i = 0; i < heads * tokens * kHeadDim; ++i) values[i] = normal(random);
  const std::vector<int64_t> shape{1, heads, tokens, kHeadDim};
  return {std::make_shared<MemoryTensor>("random", DType::f32, shape, std::move(bytes)),
          Layout::bhsd};
}

/// 900 tokens; the first 400 may not be attended to, and blocks of 100 are kept on a band.
std::shared_ptr<CallEntry> masked_call() {
  BlockMask band{1, 9, 9, 100, 100, std::vector<uint8_t>(81, 0)};
  for (int64_t q = 0; q < 9; ++q) {
    for (int64_t k = 0; k < 9; ++k) {
      band.bits[static_cast<size_t>(q * 9 + k)] = k >= 4 && std::abs(q - k) <= 1;
    }
  }
  AttentionProblem::Parts parts;
  parts.q = random_tensor(2, 900, 1);
  parts.k = random_tensor(2, 900, 2);
  parts.mask = Mask::blocks(band);
  parts.query_tokens = TokenGrid::unknown(900);
  parts.key_tokens = parts.query_tokens;
  parts.id = {10, 3, CallKind::self, {"cond"}};
  parts.name = "masked";
  auto call = std::make_shared<CallEntry>();
  call->id = parts.id;
  call->problem = std::make_shared<AttentionProblem>(AttentionProblem::make(std::move(parts)));
  return call;
}

std::string stream(const ExportSpec& spec, const std::string& out, int64_t budget_bytes,
                   int workers, const ExportWriteOptions& options = {.sync = false}) {
  const auto backend = make_backend(BackendKind::reference, {workers});
  MemoryBudget budget(budget_bytes);
  const int at_disk = threads_at_disk(spec, options);
  const auto sink = make_export(spec, out, options);
  const TilePlan plan =
      plan_tiles(sink->tasks(), sink->request(), *backend, budget.limit(), workers, at_disk);
  StreamingEngine engine(*backend, budget);
  REQUIRE(engine.run(sink->tasks(), plan, *sink));
  return read_bytes(out);
}

}  // namespace

TEST_CASE("an export in shards that is stopped while its last tiles wait is not ended") {
  const TemporaryFolder folder;
  FixtureFacts facts;
  facts.kind = CallKind::self;
  facts.branches = {"all"};
  facts.queries = TokenGrid::unknown(33);
  facts.keys = facts.queries;
  const std::vector calls{make_call(facts)};
  ExportSpec spec = make_spec(calls);
  spec.gzip = true;
  const auto backend = make_backend(BackendKind::reference, {2});
  MemoryBudget budget(int64_t{256} << 20);
  const auto sink = make_export(spec, folder / "out.h5", {.force = false, .sync = false});
  const TilePlan plan = plan_tiles(sink->tasks(), sink->request(), *backend, budget.limit(), 2);
  REQUIRE(plan.tiles == 2);
  REQUIRE(plan.workers == 2);
  // Both tiles are on their way when the stop comes; the one that is not the first waits in the
  // sink, or will.
  std::stop_source stop;
  std::barrier both(2);
  StreamControl control;
  control.stop = stop.get_token();
  control.skip = [&](int64_t, IndexRange, IndexRange) {
    both.arrive_and_wait();
    stop.request_stop();
    return false;
  };
  CHECK_FALSE(StreamingEngine(*backend, budget).run(sink->tasks(), plan, *sink, control));
  sink->suspend();
  CHECK(sink->tiles_done() == 0);
  CHECK_FALSE(std::filesystem::exists(folder / "out.h5"));
}

TEST_CASE("an export has the same bytes past the page cache and within it") {
  const TemporaryFolder folder;
  const std::vector calls{masked_call()};
  const ExportSpec spec = make_spec(calls, ExportProduct::weights, Encoding::f32);
  const int64_t payload = estimate_export(spec).payload_bytes;
  const ExportWriteOptions direct{.direct_bytes = payload};
  CHECK(threads_at_disk(spec, direct) > 0);
  CHECK(threads_at_disk(spec, {.direct_bytes = payload + 1}) == 0);
  CHECK(threads_at_disk(spec, {.sync = false, .direct_bytes = payload}) == 0);
  CHECK(threads_at_disk(make_spec(calls, ExportProduct::lse, Encoding::f32), {.direct_bytes = 0}) ==
        0);
  const std::string cached = stream(spec, folder / "cached.h5", int64_t{256} << 20, 2);
  CHECK(stream(spec, folder / "direct.h5", int64_t{256} << 20, 2, direct) == cached);
  const ExportPlan plan = spec;
  const TilePlan small = plan_tiles(plan.tasks, plan.request(),
                                    *make_backend(BackendKind::reference, {1}), 1 << 30, 1);
  CHECK(stream(spec, folder / "small.h5", small.bytes_total, 2, direct) == cached);
}

TEST_CASE("a masked map goes through the engine into the file, whatever the budget") {
  const TemporaryFolder folder;
  const std::vector calls{masked_call()};
  const ExportSpec spec = make_spec(calls, ExportProduct::weights, Encoding::f32);
  const std::string out = folder / "out.h5";
  const std::string bytes = stream(spec, out, int64_t{256} << 20, 1);
  const ExportPlan plan = spec;
  const TilePlan small = plan_tiles(plan.tasks, plan.request(),
                                    *make_backend(BackendKind::reference, {1}), 1 << 30, 1);
  CHECK(stream(spec, folder / "small.h5", small.bytes_total, 2) == bytes);

  const std::string group = "/calls/step0010_layer003_cond_self/";
  const DatasetValues weights = read_dataset(out, group + "weights");
  const DatasetValues lse = read_dataset(out, group + "lse");
  REQUIRE(weights.shape == std::vector<int64_t>{1, 2, 900, 900});
  int64_t misplaced = 0;
  int64_t bad_rows = 0;
  for (size_t row = 0; row < 2 * 900; ++row) {
    const auto query_block = static_cast<int64_t>(row % 900 / 100);
    double sum = 0;
    for (size_t key = 0; key < 900; ++key) {
      const auto key_block = static_cast<int64_t>(key / 100);
      const bool kept = key_block >= 4 && std::abs(query_block - key_block) <= 1;
      const double weight = weights.values[row * 900 + key];
      misplaced += kept ? !(weight > 0) : weight != 0;
      sum += weight;
    }
    const bool masked = query_block < 3;
    bad_rows += masked ? lse.values[row] != -INFINITY || sum != 0
                       : !std::isfinite(lse.values[row]) || std::abs(sum - 1) > 1e-5;
  }
  CHECK(misplaced == 0);
  CHECK(bad_rows == 0);
}
