#pragma once

#include <string>

namespace attnscope {

/// The processor's tile unit (AMX with bf16 products), as far as this process may use it.
struct TileUnit {
  bool present = false;  ///< in the processor
  bool usable = false;
  bool multiplies_f16 = false;  ///< AMX-FP16
  std::string obstacle;         ///< why not, in a few words; empty where it is usable
};

/// Asks the processor and the operating system, once a process: Linux grants the registers' 8 KiB a
/// thread on request, to all threads, those that run already too. Thread-safe.
const TileUnit& tile_unit();

}  // namespace attnscope
