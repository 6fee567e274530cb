#pragma once

#include <memory>
#include <string_view>

#include "core/stream/tile_backend.h"

namespace attnscope {

struct CpuKernels;

/// Which bf16 dot products a CPU backend may use for bf16 tensors.
enum class Bf16Dots : uint8_t {
  automatic,  ///< vdpbf16ps where the processor has it, else float32
  never,      ///< bf16 is widened to float32, exactly
  emulated,   ///< the sums of vdpbf16ps from float32 instructions: for tests
};

struct CpuBackendOptions {
  int threads = 0;                      ///< 0: one a core this process may use
  const CpuKernels* kernels = nullptr;  ///< null: the processor's best instruction set
  Bf16Dots bf16 = Bf16Dots::automatic;
};

/// Computes on the processor, with the kernels of one instruction set. Its name is "cpu", or
/// "cpu-bf16" where bf16 dot products may be used, or "cpu-nofma" on processors without fused
/// multiply-add: backends of one name give the same bits.
std::unique_ptr<TileBackend> make_cpu_backend(const CpuBackendOptions& options = {});

}  // namespace attnscope
