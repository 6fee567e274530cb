#include "tests/cuda/module/stand_in_device.h"

#include "kernels/reference/reference_backend.h"

namespace attnscope::test {
namespace {

class StandIn : public TileBackend {
 public:
  explicit StandIn(int threads) : backend_(make_reference_backend(threads)) {}

  std::string name() const override { return "cuda"; }
  std::string description() const override { return "cuda (stand-in)"; }
  int workers() const override { return backend_->workers(); }
  BindCost bind_cost(const AttentionProblem& problem) const override {
    return backend_->bind_cost(problem);
  }
  int64_t workspace_bytes(const AttentionProblem& problem, int64_t rows, int64_t cols,
                          bool one_product) const override {
    return backend_->workspace_bytes(problem, rows, cols, one_product);
  }
  int64_t outputs_workspace_bytes(const AttentionProblem& problem, int64_t rows) const override {
    return backend_->outputs_workspace_bytes(problem, rows);
  }
  std::unique_ptr<BoundHead> bind(const AttentionProblem& problem, int64_t batch,
                                  int64_t head) const override {
    return backend_->bind(problem, batch, head);
  }

 private:
  std::unique_ptr<TileBackend> backend_;
};

}  // namespace

std::unique_ptr<TileBackend> make_stand_in_device(const CudaModuleOptions& options) {
  if (options.notice) {
    options.notice("cuda: bytes " + std::to_string(options.vram_bytes) + " share " +
                   std::to_string(options.vram_share) + " threads " +
                   std::to_string(options.threads));
  }
  return std::make_unique<StandIn>(options.threads);
}

}  // namespace attnscope::test
