// The window's passes with a backend that reduces whole panels at once, as one on a device does.
#include <atomic>

#include "core/reduce/panel_reduction.h"
#include "kernels/backend_factory.h"
#include "tests/support/backend/forwarding_backend.h"
#include "tests/support/catch.h"
#include "tests/support/service_harness.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

struct Calls {
  std::atomic<int> whole{0};
  std::atomic<int> parts{0};
};

class CountingHead : public ForwardingHead {
 public:
  CountingHead(std::unique_ptr<BoundHead> head, Calls& calls)
      : ForwardingHead(std::move(head)), calls_(calls) {}

  void reduce(const QueryBlock& queries, int64_t first, PanelReduction& panel,
              std::span<std::byte> workspace) const override {
    const bool whole = first == 0 && static_cast<int64_t>(queries.index.size()) == panel.num_rows();
    ++(whole ? calls_.whole : calls_.parts);
    ForwardingHead::reduce(queries, first, panel, workspace);
  }

 private:
  Calls& calls_;
};

/// The CPU backend, which asks for whole panels.
class WholePanels : public ForwardingBackend {
 public:
  explicit WholePanels(Calls& calls)
      : ForwardingBackend(make_backend(BackendKind::cpu, {2})), calls_(calls) {}

  int64_t whole_panel_rows() const override { return 1536; }

 protected:
  std::unique_ptr<BoundHead> wrap(std::unique_ptr<BoundHead> head) const override {
    return std::make_unique<CountingHead>(std::move(head), calls_);
  }

 private:
  Calls& calls_;
};

}  // namespace

TEST_CASE("a pass gives panels whole to a backend that wants them so") {
  const Oracle oracle({.shape = {1, 1, 1, 4101, 1203, 8}, .dtype = DType::f16, .mask = "causal"});
  const HeadId head{0, 0, 0};
  const MapReference reference(oracle, head, Quantity::weights);
  Calls calls;
  ServiceHarness harness(oracle.problem(),
                         {.memory = int64_t{128} << 20, .threads = 2, .cache_folders = {}},
                         std::make_unique<WholePanels>(calls));
  const MapGeometry geometry = harness.service().geometry(head);
  const TileId top{head, Quantity::weights, geometry.top_level, 0, 0};
  harness.want({{}, {}, {top}, {head}});
  REQUIRE(harness.wait(
      [&] { return harness.service().exact(head) && !harness.service().status().busy; }));
  CHECK(calls.whole > 1);
  CHECK(calls.parts == 0);
  const auto tile = find(harness.service(), top);
  REQUIRE(tile);
  CHECK(tile->exact);
  CHECK(reference.differs(*tile) == "");
}
