#include "kernels/cpu/cpu_backend.h"

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/stream/few_rows.h"
#include "core/stream/value_panels.h"
#include "kernels/common/flush_denormals.h"
#include "kernels/common/host_cores.h"
#include "kernels/common/tile_unit.h"
#include "kernels/common/workspace.h"
#include "kernels/cpu/cpu_head.h"
#include "kernels/cpu/key_row_head.h"
#include "kernels/cpu/keys/product_stream.h"
#include "kernels/cpu/packing/cpu_packing.h"
#include "kernels/cpu/simd/cpu_dispatch.h"

namespace attnscope {
namespace {

/// vdpbf16ps does half as much again, or less, than fused multiply-adds on Intel's processors, and
/// twice as much on AMD's (docs/performance.md). Who made it decides, not a timing: the name that
/// results are recorded under must not depend on how busy the machine is.
bool bf16_is_faster() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel") == 0;
#else
  return true;
#endif
}

/// True where the instructions give the bytes of their emulation, which the tests hold against the
/// reference, for products of numbers of many sizes.
bool tiles_match_emulation(const CpuKernels::Products& native,
                           const CpuKernels::Products& emulated) {
  constexpr int64_t kSteps = 32;
  const auto size = [](int64_t count) { return static_cast<size_t>(count); };
  std::vector<float> memory(
      size(kSteps * (kTileUnitRows + kPanelKeys) + 2 * kTileUnitRows * kBlockKeys + 64));
  Workspace pieces(std::as_writable_bytes(std::span(memory)));
  auto* const q = pieces.take<uint32_t>(kSteps * kTileUnitRows);
  auto* const k = pieces.take<uint32_t>(kSteps * kPanelKeys);
  uint32_t state = 1;
  const auto number = [&] {
    state = state * 1664525u + 1013904223u;
    // A sign, one of 32 exponents about 1, seven bits; taken for f16, finite too.
    return (state >> 16 & 0x8000u) | (((state >> 8 & 31u) + 111u) << 7) | (state >> 24 & 0x7fu);
  };
  for (int64_t i = 0; i < kSteps * kTileUnitRows; ++i) q[i] = number() << 16 | number();
  for (int64_t i = 0; i < kSteps * kPanelKeys; ++i) k[i] = number() << 16 | number();
  ProductBlock block{.q = reinterpret_cast<const float*>(q),
                     .k = reinterpret_cast<const float*>(k),
                     .steps = kSteps,
                     .rows = kTileUnitRows,
                     .panels = 1,
                     .out_stride = kBlockKeys};
  const FlushDenormals flush;
  float* const out[2] = {pieces.take<float>(kTileUnitRows * kBlockKeys),
                         pieces.take<float>(kTileUnitRows * kBlockKeys)};
  block.out = out[0];
  native.raw(block);
  block.out = out[1];
  emulated.raw(block);
  return std::equal(out[0], out[0] + kTileUnitRows * kBlockKeys, out[1], [](float a, float b) {
    return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
  });
}

std::string find_tiles_obstacle(const CpuKernels& kernels) {
  if (!tile_unit().usable) return tile_unit().obstacle;
  if (kernels.tiles.raw == nullptr) return "AMX is used beside AVX-512 only";
  if (!tiles_match_emulation(kernels.tiles, kernels.tiles_emulated)) {
    return "AMX adds in another order here than is known of it";
  }
  return "";
}

std::string find_f16_tiles_obstacle(const CpuKernels& kernels) {
  if (!tile_unit().multiplies_f16) return "this processor has no AMX with fp16";
  if (!tiles_match_emulation(kernels.f16_tiles, kernels.f16_tiles_emulated)) {
    return "AMX adds fp16 products in another order here than is known of it";
  }
  return "";
}

const std::string& tiles_obstacle() {
  static const std::string obstacle = find_tiles_obstacle(best_cpu_kernels());
  return obstacle;
}

const std::string& f16_tiles_obstacle() {
  static const std::string obstacle =
      tiles_obstacle().empty() ? find_f16_tiles_obstacle(best_cpu_kernels()) : tiles_obstacle();
  return obstacle;
}

CpuProducts resolve(CpuProducts products, const CpuKernels& kernels) {
  if (products == CpuProducts::best) {
    // Others than the best kernels are chosen by tests.
    const bool best = &kernels == &best_cpu_kernels();
    if (best && f16_tiles_obstacle().empty()) return CpuProducts::f16_tiles;
    products = best && tiles_obstacle().empty() ? CpuProducts::tiles : CpuProducts::vectors;
  }
  if (products != CpuProducts::vectors) return products;
  return kernels.bf16.softmax != nullptr && bf16_is_faster() ? CpuProducts::bf16
                                                             : CpuProducts::floats;
}

const CpuKernels::Products& products_of(const CpuKernels& kernels, CpuProducts products) {
  switch (products) {
    case CpuProducts::bf16:
      return kernels.bf16;
    case CpuProducts::bf16_emulated:
      return kernels.bf16_emulated;
    case CpuProducts::tiles:
    case CpuProducts::f16_tiles:
      return kernels.tiles;
    case CpuProducts::tiles_emulated:
    case CpuProducts::f16_tiles_emulated:
      return kernels.tiles_emulated;
    default:
      return kernels.f32;
  }
}

class CpuBackend : public TileBackend, public FewRowBackend {
 public:
  explicit CpuBackend(const CpuBackendOptions& options)
      : kernels_(options.kernels != nullptr ? *options.kernels : best_cpu_kernels()),
        products_(resolve(options.products, kernels_)),
        workers_(options.threads > 0 ? options.threads : usable_cores()) {
    const std::string obstacle = cpu_products_obstacle(options.products, options.kernels);
    // Tests choose kernels without fused multiply-adds for their float32 products.
    const bool refused = options.kernels == nullptr && !obstacle.empty();
    if (refused || products_of(kernels_, products_).softmax == nullptr ||
        (uses_f16_tiles() && f16_tiles().softmax == nullptr)) {
      throw Error(ErrorCode::unavailable, obstacle);
    }
  }

  std::string name() const override {
    if (uses_tiles()) return uses_f16_tiles() ? kWholeF16Name : kTilesName;
    return vector_name();
  }

  std::string name_for(const AttentionProblem& problem) const override {
    // A call that tiles do not serve is computed as by a backend without them.
    const PackedFormat format = format_of(problem);
    if (format.products != PackedProducts::tiles) return vector_name();
    return format.whole_f16 ? kWholeF16Name : kTilesName;
  }

  std::string description() const override {
    const std::string threads = workers_ == 1 ? " thread" : " threads";
    const char* const beside = uses_tiles() ? " AMX" : has_bf16() ? " BF16" : "";
    return "cpu (" + std::string(kernels_.isa) + beside + ", " + std::to_string(workers_) +
           threads + ")";
  }

  int workers() const override { return workers_; }
  int64_t open_units() const override { return uses_tiles() ? kOpenUnits : 1; }

  BindCost bind_cost(const AttentionProblem& problem) const override {
    const PackedFormat format = format_of(problem);
    return {packed_key_elements(format, problem.num_keys()) * 4,
            pack_keys_transient_bytes(format, problem.k(), workers_) +
                packing_threads(format, problem.k(), workers_) * kReaderBytes};
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
    return make_head(problem, batch, head, KeyKeeping::packed);
  }

  int64_t few_rows(const AttentionProblem&) const override {
    // So many meet each key in one call.
    return kRegisterRows;
  }

  BindCost bind_cost_for_few(const AttentionProblem& problem, int64_t rows) const override {
    const PackedFormat format = format_of(problem);
    if (format.products == PackedProducts::tiles) {
      return {KeyRowHead::bytes(format, problem.k(), rows, workers_), 0};
    }
    return {ProductStream::bytes(format, problem.k(), workers_), 0};
  }

  std::unique_ptr<BoundHead> bind_for_few(const AttentionProblem& problem, int64_t batch,
                                          int64_t head) const override {
    const PackedFormat format = format_of(problem);
    if (format.products == PackedProducts::tiles) {
      return std::make_unique<KeyRowHead>(problem, batch, head, format, kernels_,
                                          products_for(format), workers_);
    }
    return make_head(problem, batch, head, KeyKeeping::streamed);
  }

  bool refuses_bad_keys(const AttentionProblem& problem) const override {
    return format_of(problem).products == PackedProducts::tiles;
  }

 private:
  static constexpr const char* kTilesName = "cpu-amx";
  static constexpr const char* kWholeF16Name = "cpu-amx-fp16";

  bool uses_tiles() const {
    return products_ == CpuProducts::tiles || products_ == CpuProducts::tiles_emulated ||
           uses_f16_tiles();
  }
  bool uses_f16_tiles() const {
    return products_ == CpuProducts::f16_tiles || products_ == CpuProducts::f16_tiles_emulated;
  }
  bool has_bf16() const {
    return products_ == CpuProducts::bf16 || products_ == CpuProducts::bf16_emulated;
  }
  std::string vector_name() const {
    if (!kernels_.fused_multiply_add) return "cpu-nofma";
    return has_bf16() ? "cpu-bf16" : "cpu";
  }

  std::unique_ptr<BoundHead> make_head(const AttentionProblem& problem, int64_t batch, int64_t head,
                                       KeyKeeping keeping) const {
    const PackedFormat format = format_of(problem);
    return std::make_unique<CpuHead>(problem, batch, head, format, kernels_, products_for(format),
                                     keeping, workers_);
  }

  const CpuKernels::Products& f16_tiles() const {
    return products_ == CpuProducts::f16_tiles ? kernels_.f16_tiles : kernels_.f16_tiles_emulated;
  }

  const CpuKernels::Products& products_for(const PackedFormat& format) const {
    if (format.products == PackedProducts::floats) return kernels_.f32;
    return format.whole_f16 ? f16_tiles() : products_of(kernels_, products_);
  }

  PackedFormat format_of(const AttentionProblem& problem) const {
    PackedFormat format{problem.q().dtype(), problem.head_dim(), problem.score()};
    if (uses_tiles() && is_softmax(problem.score()) && problem.head_dim() <= kMaxTileDim) {
      format.products = PackedProducts::tiles;
      format.whole_f16 = uses_f16_tiles() && format.dtype == DType::f16;
    } else if (has_bf16() && format.dtype == DType::bf16 && !is_linear(problem.score())) {
      format.products = PackedProducts::bf16_pairs;
    }
    return format;
  }

  const CpuKernels& kernels_;
  const CpuProducts products_;
  const int workers_;
};

}  // namespace

std::string cpu_products_obstacle(CpuProducts products, const CpuKernels* kernels) {
  const CpuKernels& own = kernels != nullptr ? *kernels : best_cpu_kernels();
  switch (products) {
    case CpuProducts::floats:
      if (own.fused_multiply_add) return "";
      return "backend cpu-fma: this processor has no fused multiply-add (FMA3)";
    case CpuProducts::bf16:
      if (own.bf16.softmax != nullptr) return "";
      return "backend cpu-bf16: this processor has no vdpbf16ps (AVX512_BF16)";
    case CpuProducts::tiles:
      if (tiles_obstacle().empty()) return "";
      return "backend cpu-amx: " + tiles_obstacle();
    case CpuProducts::f16_tiles:
      if (f16_tiles_obstacle().empty()) return "";
      return "backend cpu-amx-fp16: " + f16_tiles_obstacle();
    case CpuProducts::tiles_emulated:
    case CpuProducts::f16_tiles_emulated:
      if (own.tiles_emulated.softmax != nullptr) return "";
      return "tiles are emulated by fused multiply-adds, which are not here";
    default:
      return "";
  }
}

std::unique_ptr<TileBackend> make_cpu_backend(const CpuBackendOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace attnscope
