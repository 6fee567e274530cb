#pragma once

#include <memory>
#include <string>

#include "core/stream/tile_backend.h"

namespace attnscope {

struct CpuKernels;

/// Which instructions multiply queries with keys. All but the first two are chosen as such, and
/// bf16 ones serve problems of bf16 tensors, tile ones those with softmax; float32 serves the rest.
enum class CpuProducts : uint8_t {
  best,            ///< f16_tiles or tiles, where this process may use them, else `vectors`
  vectors,         ///< bf16 where the processor is faster by it, else floats
  floats,          ///< fused multiply-adds; bf16 and f16 are widened, exactly
  bf16,            ///< vdpbf16ps
  bf16_emulated,   ///< the sums of vdpbf16ps from float32 instructions: for tests
  tiles,           ///< AMX, of bf16 numbers; those of f16 and f32 are sums of several
  tiles_emulated,  ///< the sums of AMX from float32 instructions: for tests
  f16_tiles,       ///< the same, and f16 as it is by AMX-FP16
  f16_tiles_emulated,
};

struct CpuBackendOptions {
  int threads = 0;                      ///< 0: one a core this process may use
  const CpuKernels* kernels = nullptr;  ///< null: the processor's best instruction set
  CpuProducts products = CpuProducts::best;
};

/// Why this process cannot compute so with these kernels (null: the processor's best), in a few
/// words; empty where it can.
std::string cpu_products_obstacle(CpuProducts products, const CpuKernels* kernels = nullptr);

/// Computes on the processor, with the kernels of one instruction set. Its name is "cpu-amx" where
/// tiles are used, "cpu-amx-fp16" where f16 is multiplied by them as it is, "cpu-bf16" where bf16
/// dot products are, "cpu" where neither is, or "cpu-nofma" on processors without fused
/// multiply-add: backends of one name give the same bits. Throws Error(unavailable) where this
/// process cannot compute so.
std::unique_ptr<TileBackend> make_cpu_backend(const CpuBackendOptions& options = {});

}  // namespace attnscope
