#pragma once

// Instruction sets that nothing is compiled for; for files that are compiled once for each of the
// others, before Highway's headers. SSSE3 and SSE4 lack fused multiply-add like the baseline,
// AVX3_DL adds nothing that is used here, and the scalable SVE targets cannot hold vectors in
// arrays: NEON serves those machines.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
