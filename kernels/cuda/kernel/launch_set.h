// A KernelSet from a way of making products. Included by the files that name one.
#pragma once

#include "kernels/cuda/kernel/kernel_set.h"
#include "kernels/cuda/kernel/launch.h"
#include "kernels/cuda/kernel/norm_kernel.h"
#include "kernels/cuda/kernel/reduce_kernel.h"
#include "kernels/cuda/kernel/texel_kernel.h"

namespace attnscope::cuda {

/// Blocks of a kernel that one multiprocessor of the current device holds at once.
template <typename Kernel>
cudaError_t resident(Kernel kernel, int threads, size_t shared_bytes, int* blocks) {
  const cudaError_t allowed = allow_shared(kernel, shared_bytes);
  if (allowed != cudaSuccess) return allowed;
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared_bytes);
}

/// The kernels whose blocks pass over keys.
template <class Product>
struct RowLaunches {
  static LaunchShape shape(const CallArgs& call, int length, int split) {
    const auto blocks = [](int count, int each) {
      return static_cast<unsigned>((count + each - 1) / each);
    };
    return {dim3(blocks(call.row_tiles, Product::kRowTiles), blocks(length, split)),
            Product::kBlockThreads, Product::shared_bytes(call.padded_dim)};
  }

  using SumsKernel = void (*)(NormArgs);
  static SumsKernel sums_kernel(int padded_dim, bool moments) {
    // Products that never take the polynomial have no kernels with it.
    if constexpr (Product::takes_polynomial(1)) {
      if (Product::takes_polynomial(padded_dim)) {
        return moments ? cuda::sum_rows<Product, true, true> : cuda::sum_rows<Product, false, true>;
      }
    }
    return moments ? cuda::sum_rows<Product, true, false> : cuda::sum_rows<Product, false, false>;
  }

  static cudaError_t sum_rows(const NormArgs& args, bool moments, cudaStream_t stream) {
    const LaunchShape launched =
        shape(args.call, args.end_segment - args.first_segment, args.split_segments);
    return launch(sums_kernel(args.call.padded_dim, moments), launched, stream, args);
  }

  static cudaError_t emit(const EmitArgs& args, int split_tiles, cudaStream_t stream) {
    return launch(emit_rows<Product>,
                  shape(args.call, args.end_tile - args.first_tile, split_tiles), stream, args);
  }

  static cudaError_t resident_blocks(int padded_dim, int* blocks) {
    const auto bytes = static_cast<size_t>(Product::shared_bytes(padded_dim));
    return resident(sums_kernel(padded_dim, true), Product::kBlockThreads, bytes, blocks);
  }

  static void put(KernelSet& set) {
    set.block_row_tiles = Product::kRowTiles;
    set.sum_rows = sum_rows;
    set.emit = emit;
    set.resident_blocks = resident_blocks;
  }
};

template <class Product>
struct LaunchSet {
  static int64_t shared_bytes(int padded_dim) {
    const int64_t product = Product::shared_bytes(padded_dim);
    return product > TileWeights::kBytes ? product : TileWeights::kBytes;
  }

  static cudaError_t reduce(const ReduceArgs& args, cudaStream_t stream) {
    const LaunchShape shape{dim3(static_cast<unsigned>(args.call.row_tiles),
                                 static_cast<unsigned>(args.end_tile - args.first_tile)),
                            kThreads, shared_bytes(args.call.padded_dim)};
    return launch(reduce_tiles<Product>, shape, stream, args);
  }

  static cudaError_t pool(const TexelArgs& args, int split_tiles, cudaStream_t stream) {
    return launch(
        pool_tiles<Product>,
        RowLaunches<Product>::shape(args.call, args.end_tile - args.first_tile, split_tiles),
        stream, args);
  }

  static cudaError_t resident_pools(int padded_dim, int* blocks) {
    return resident(pool_tiles<Product>, Product::kBlockThreads,
                    static_cast<size_t>(Product::shared_bytes(padded_dim)), blocks);
  }

  static KernelSet set(const char* name, bool stored, int capability) {
    KernelSet set;
    set.name = set.reduce_name = name;
    set.stored = stored;
    set.capability = capability;
    set.shared_bytes = shared_bytes;
    set.reduce = reduce;
    set.pool = pool;
    set.resident_pools = resident_pools;
    RowLaunches<Product>::put(set);
    return set;
  }
};

}  // namespace attnscope::cuda
