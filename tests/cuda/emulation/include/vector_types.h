#pragma once

// Emulation: the vector types that kernels load and store by, laid out as on a device, and the
// indices of a thread.

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

#define ATTNSCOPE_EMULATED_VECTORS(element, name)                          \
  struct alignas(2 * sizeof(element)) name##2 {                            \
    element x, y;                                                          \
  };                                                                       \
  struct alignas(sizeof(element) < 8 ? 4 * sizeof(element) : 16) name##4 { \
    element x, y, z, w;                                                    \
  };                                                                       \
  inline name##2 make_##name##2(element x, element y) { return {x, y}; }   \
  inline name##4 make_##name##4(element x, element y, element z, element w) { return {x, y, z, w}; }

ATTNSCOPE_EMULATED_VECTORS(unsigned char, uchar)
ATTNSCOPE_EMULATED_VECTORS(unsigned short, ushort)
ATTNSCOPE_EMULATED_VECTORS(int, int)
ATTNSCOPE_EMULATED_VECTORS(unsigned, uint)
ATTNSCOPE_EMULATED_VECTORS(float, float)
ATTNSCOPE_EMULATED_VECTORS(double, double)
#undef ATTNSCOPE_EMULATED_VECTORS
