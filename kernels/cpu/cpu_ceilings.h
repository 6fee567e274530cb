#pragma once

#include <string>

namespace attnscope {

/// The rates that this machine's registers reach, measured in this process: `attnscope bench` shows
/// beside them what was reached.
struct CpuCeilings {
  std::string isa;                   ///< the instruction set measured: the one the cpu backend uses
  int threads = 1;                   ///< of the figures that do not say one_thread
  double fma_gflops_one_thread = 0;  ///< float32 fused multiply-adds, 2 operations each, one thread
  double fma_gflops = 0;
  double exp_gigaelements_one_thread =
      0;  ///< the kernels' own exponential over an L1-resident buffer
  double exp_gigaelements = 0;
  double bf16_gflops_one_thread = 0;  ///< vdpbf16ps, 4 operations a lane; 0 where there is none
  double bf16_gflops = 0;
  double tile_gflops_one_thread = 0;  ///< AMX, 2 operations a product; 0 where there is none
  double tile_gflops = 0;
  /// The exponential of the kernels that use AMX; 0 where there is none.
  double table_exp_gigaelements = 0;
};

/// Takes about `seconds` (at least a few milliseconds a figure, the best of several rounds).
/// threads 0: one a core this process may use.
CpuCeilings measure_cpu_ceilings(int threads = 0, double seconds = 0.5);

}  // namespace attnscope
