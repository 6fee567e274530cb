#pragma once

// Emulation: the type's bits, as they lie in memory. Kernels convert them by device_intrinsics.h.
struct __nv_bfloat16_raw {
  unsigned short x;
};
