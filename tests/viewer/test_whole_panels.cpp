// The window's passes with a backend that reduces whole panels at once, as one on a device does.
#include <atomic>

#include "core/panel_reduction.h"
#include "kernels/backend_factory.h"
#include "tests/catch.h"
#include "tests/viewer/service_harness.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

struct Calls {
  std::atomic<int> whole{0};
  std::atomic<int> parts{0};
};

class CountingHead : public BoundHead {
 public:
  CountingHead(std::unique_ptr<BoundHead> head, Calls& calls)
      : head_(std::move(head)), calls_(calls) {}

  void row_norms(const QueryBlock& queries, std::span<RowNorm> norms,
                 std::span<std::byte> workspace) const override {
    head_->row_norms(queries, norms, workspace);
  }
  void emit(const QueryBlock& queries, std::span<const RowNorm> norms, IndexRange keys,
            Quantity quantity, const EmitTarget& target,
            std::span<std::byte> workspace) const override {
    head_->emit(queries, norms, keys, quantity, target, workspace);
  }
  void emit_panel(const QueryBlock& queries, std::span<RowNorm> norms, IndexRange keys,
                  const EmitTarget& target, std::span<std::byte> workspace) const override {
    head_->emit_panel(queries, norms, keys, target, workspace);
  }
  void reduce(const QueryBlock& queries, int64_t first, PanelReduction& panel,
              std::span<std::byte> workspace) const override {
    const bool whole = first == 0 && static_cast<int64_t>(queries.index.size()) == panel.num_rows();
    ++(whole ? calls_.whole : calls_.parts);
    head_->reduce(queries, first, panel, workspace);
  }

 private:
  const std::unique_ptr<BoundHead> head_;
  Calls& calls_;
};

/// The CPU backend, which asks for whole panels.
class WholePanels : public TileBackend {
 public:
  explicit WholePanels(Calls& calls) : calls_(calls) {}

  std::string name() const override { return cpu_->name(); }
  std::string description() const override { return cpu_->description(); }
  int workers() const override { return cpu_->workers(); }
  int64_t whole_panel_rows() const override { return 1536; }
  BindCost bind_cost(const AttentionProblem& problem) const override {
    return cpu_->bind_cost(problem);
  }
  int64_t workspace_bytes(const AttentionProblem& problem, int64_t rows, int64_t cols,
                          bool one_product) const override {
    return cpu_->workspace_bytes(problem, rows, cols, one_product);
  }
  std::unique_ptr<BoundHead> bind(const AttentionProblem& problem, int64_t batch,
                                  int64_t head) const override {
    return std::make_unique<CountingHead>(cpu_->bind(problem, batch, head), calls_);
  }

 private:
  const std::unique_ptr<TileBackend> cpu_ = make_backend(BackendKind::cpu, {2});
  Calls& calls_;
};

}  // namespace

TEST_CASE("a pass gives panels whole to a backend that wants them so") {
  const Oracle oracle({.shape = {1, 1, 1, 4101, 1203, 8}, .dtype = DType::f16, .mask = "causal"});
  const HeadId head{0, 0, 0};
  const MapReference reference(oracle, head, MapQuantity::weights);
  Calls calls;
  ServiceHarness harness(oracle.problem(),
                         {.memory = int64_t{128} << 20, .threads = 2, .cache_folders = {}},
                         std::make_unique<WholePanels>(calls));
  const MapGeometry geometry = harness.service().geometry(head);
  const TileId top{head, MapQuantity::weights, geometry.top_level, 0, 0};
  harness.want({{}, {}, {top}, {head}});
  REQUIRE(harness.wait(
      [&] { return harness.service().exact(head) && !harness.service().status().busy; }));
  CHECK(calls.whole > 1);
  CHECK(calls.parts == 0);
  const auto tile = harness.service().find(top);
  REQUIRE(tile);
  CHECK(tile->exact);
  CHECK(reference.differs(*tile) == "");
}
