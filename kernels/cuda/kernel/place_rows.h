#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace attnscope::cuda {

/// Rows as a tensor has them to rows as kernels read them: padded with zeros, one after the other,
/// or in tiles (kChunkChannels in tile_args.h). Device pointers, aligned to 16 bytes; where both
/// sides count rows from 0, `out_rows` may be more than `rows`: those are zeros.
struct PlaceRowsArgs {
  const void* source = nullptr;  ///< [rows, source_bytes], packed
  void* out = nullptr;           ///< [out_rows, row_bytes]
  int rows = 0;
  int out_rows = 0;      ///< whole tiles where these are wanted
  int source_bytes = 0;  ///< of a row, a multiple of 2
  int row_bytes = 0;     ///< of a placed row, a multiple of 16; whole chunks in tiles
  bool tiled = false;
  bool queries = false;  ///< tiles have their rows at query_place
};

cudaError_t launch_place_rows(const PlaceRowsArgs& args, cudaStream_t stream);

}  // namespace attnscope::cuda
