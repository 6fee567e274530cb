#pragma once

#include <cuda_runtime.h>

#include <climits>

#include "kernels/cuda/kernel/reduce_args.h"
#include "kernels/cuda/kernel/texel_args.h"

namespace attnscope::cuda {

/// The kernels over one way of making products. Launches are queued on the stream.
struct KernelSet {
  const char* name = "";
  const char* reduce_name = "";  ///< of how `reduce` and `pool` make products
  /// True where products must be in CallArgs::products beforehand.
  bool stored = false;
  /// The device's compute capability, as 10·major + minor, must be at least this, and below that.
  int capability = 0;
  int end_capability = INT_MAX;
  /// Tiles of rows that one block of sum_rows and emit takes.
  int block_row_tiles = 1;
  /// The most bytes of shared memory that a block of any of the kernels needs.
  int64_t (*shared_bytes)(int padded_dim) = nullptr;

  bool runs_on(int device_capability) const {
    return capability <= device_capability && device_capability < end_capability;
  }

  cudaError_t (*sum_rows)(const NormArgs& args, bool moments, cudaStream_t stream) = nullptr;
  /// One block takes `split_tiles` key tiles.
  cudaError_t (*emit)(const EmitArgs& args, int split_tiles, cudaStream_t stream) = nullptr;
  cudaError_t (*reduce)(const ReduceArgs& args, cudaStream_t stream) = nullptr;
  /// Blocks of sum_rows (with moments) that one multiprocessor holds at once.
  cudaError_t (*resident_blocks)(int padded_dim, int* blocks) = nullptr;
  /// Blocks of pool that one multiprocessor holds at once.
  cudaError_t (*resident_pools)(int padded_dim, int* blocks) = nullptr;
  /// As emit.
  cudaError_t (*pool)(const TexelArgs& args, int split_tiles, cudaStream_t stream) = nullptr;
};

/// Products that cuBLAS made.
const KernelSet& stored_kernels();
/// wgmma on float16 and bfloat16 tensors; null in builds without CuTe or without code for sm_90a.
const KernelSet* wgmma_f16_kernels();
const KernelSet* wgmma_bf16_kernels();
/// mma.sync on float16 and bfloat16 tensors; null in builds without CuTe.
const KernelSet* mma_f16_kernels();
const KernelSet* mma_bf16_kernels();

/// Segments to rows, see combine_kernels.cu. Device pointers.
struct CombineRowsArgs {
  int rows = 0;
  int64_t stride = 0;  ///< rows of `parts`
  int segments = 0;
  const RowPart* parts = nullptr;
  RowPart* rows_out = nullptr;  ///< [rows]: the sums of all keys, by one reference
};

/// Products of blocks of keys to the double sums over them, see combine_kernels.cu. Device
/// pointers.
struct AddBlocksArgs {
  int64_t count = 0;  ///< elements of one block
  int blocks = 0;
  const float* products = nullptr;  ///< [blocks, count]
  double* totals = nullptr;         ///< [count]
};

cudaError_t launch_add_blocks(const AddBlocksArgs& args, cudaStream_t stream);
cudaError_t launch_combine_rows(const CombineRowsArgs& args, cudaStream_t stream);
cudaError_t launch_combine_tiles(const CombineArgs& args, cudaStream_t stream);

}  // namespace attnscope::cuda
