#include "kernels/cpu/cpu_backend.h"

#include "core/stream/value_panels.h"
#include "kernels/common/host_cores.h"
#include "kernels/cpu/cpu_head.h"
#include "kernels/cpu/cpu_kernels.h"

namespace attnscope {
namespace {

class CpuBackend : public TileBackend {
 public:
  explicit CpuBackend(const CpuBackendOptions& options)
      : kernels_(options.kernels != nullptr ? *options.kernels : best_cpu_kernels()),
        bf16_(options.bf16),
        workers_(options.threads > 0 ? options.threads : usable_cores()) {}

  std::string name() const override {
    if (!kernels_.fused_multiply_add) return "cpu-nofma";
    return has_bf16() ? "cpu-bf16" : "cpu";
  }

  std::string description() const override {
    const std::string threads = workers_ == 1 ? " thread" : " threads";
    return "cpu (" + std::string(kernels_.isa) + (has_bf16() ? " BF16" : "") + ", " +
           std::to_string(workers_) + threads + ")";
  }

  int workers() const override { return workers_; }

  BindCost bind_cost(const AttentionProblem& problem) const override {
    const PackedFormat format = format_of(problem);
    // HeadTensor::read_rows may take up to 1 MiB of its own.
    constexpr int64_t kReaderBytes = int64_t{1} << 20;
    return {packed_key_elements(format, problem.num_keys()) * 4,
            pack_keys_transient_bytes(format, problem.num_keys()) + kReaderBytes};
  }

  int64_t workspace_bytes(const AttentionProblem& problem, int64_t rows, int64_t cols,
                          bool one_product) const override {
    return CpuHead::workspace_bytes(format_of(problem), problem.num_keys(), rows, cols,
                                    one_product);
  }

  int64_t outputs_workspace_bytes(const AttentionProblem& problem, int64_t rows) const override {
    return CpuHead::outputs_workspace_bytes(format_of(problem), problem.num_keys(), rows,
                                            problem.v().width());
  }

  std::unique_ptr<BoundHead> bind(const AttentionProblem& problem, int64_t batch,
                                  int64_t head) const override {
    const PackedFormat format = format_of(problem);
    const CpuKernels::Products& products = format.bf16_pairs ? bf16_products() : kernels_.f32;
    return std::make_unique<CpuHead>(problem, batch, head, format, kernels_, products);
  }

 private:
  const CpuKernels::Products& bf16_products() const {
    return bf16_ == Bf16Dots::emulated ? kernels_.bf16_emulated : kernels_.bf16;
  }

  bool has_bf16() const { return bf16_ != Bf16Dots::never && bf16_products().softmax != nullptr; }

  PackedFormat format_of(const AttentionProblem& problem) const {
    PackedFormat format{problem.q().dtype(), problem.head_dim(), problem.score(), false};
    format.bf16_pairs = has_bf16() && format.dtype == DType::bf16 && !is_linear(problem.score());
    return format;
  }

  const CpuKernels& kernels_;
  const Bf16Dots bf16_;
  const int workers_;
};

}  // namespace

std::unique_ptr<TileBackend> make_cpu_backend(const CpuBackendOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace attnscope
