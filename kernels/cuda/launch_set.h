// A KernelSet from a way of making products. Included by the files that name one.
#pragma once

#include "kernels/cuda/kernel_set.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/norm_kernel.h"
#include "kernels/cuda/reduce_kernel.h"
#include "kernels/cuda/texel_kernel.h"

namespace attnscope::cuda {

template <class Product>
struct LaunchSet {
  static int64_t shared_bytes(int padded_dim) {
    const int64_t product = Product::shared_bytes(padded_dim);
    return product > TileWeights::kBytes ? product : TileWeights::kBytes;
  }

  static cudaError_t sum_rows(const NormArgs& args, bool moments, cudaStream_t stream) {
    const int segments = args.end_segment - args.first_segment;
    const LaunchShape shape{
        dim3(static_cast<unsigned>(args.call.row_tiles),
             static_cast<unsigned>((segments + args.split_segments - 1) / args.split_segments)),
        kThreads, Product::shared_bytes(args.call.padded_dim)};
    return moments ? launch(cuda::sum_rows<Product, true>, shape, stream, args)
                   : launch(cuda::sum_rows<Product, false>, shape, stream, args);
  }

  static cudaError_t emit(const EmitArgs& args, int split_tiles, cudaStream_t stream) {
    const int tiles = args.end_tile - args.first_tile;
    const LaunchShape shape{dim3(static_cast<unsigned>(args.call.row_tiles),
                                 static_cast<unsigned>((tiles + split_tiles - 1) / split_tiles)),
                            kThreads, Product::shared_bytes(args.call.padded_dim)};
    return launch(emit_rows<Product>, shape, stream, args);
  }

  static cudaError_t reduce(const ReduceArgs& args, cudaStream_t stream) {
    const LaunchShape shape{dim3(static_cast<unsigned>(args.call.row_tiles),
                                 static_cast<unsigned>(args.end_tile - args.first_tile)),
                            kThreads, shared_bytes(args.call.padded_dim)};
    return launch(reduce_tiles<Product>, shape, stream, args);
  }

  static cudaError_t pool(const TexelArgs& args, int split_tiles, cudaStream_t stream) {
    const int tiles = args.end_tile - args.first_tile;
    const LaunchShape shape{dim3(static_cast<unsigned>(args.call.row_tiles),
                                 static_cast<unsigned>((tiles + split_tiles - 1) / split_tiles)),
                            kThreads, Product::shared_bytes(args.call.padded_dim)};
    return launch(pool_tiles<Product>, shape, stream, args);
  }

  static cudaError_t resident_blocks(int padded_dim, int* blocks) {
    const auto bytes = static_cast<size_t>(Product::shared_bytes(padded_dim));
    const cudaError_t allowed = allow_shared(cuda::sum_rows<Product, true>, bytes);
    if (allowed != cudaSuccess) return allowed;
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, cuda::sum_rows<Product, true>,
                                                         kThreads, bytes);
  }

  static KernelSet set(const char* name, bool stored, int capability) {
    return {name, stored, capability, shared_bytes, sum_rows, emit, reduce, resident_blocks, pool};
  }
};

}  // namespace attnscope::cuda
