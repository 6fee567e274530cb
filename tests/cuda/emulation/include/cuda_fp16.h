#pragma once

// Emulation: the type's bits, as they lie in memory. Kernels convert them by device_intrinsics.h.
struct __half_raw {
  unsigned short x;
};
