#pragma once

#include <cstdint>

/// The exports of the module: one map, and the calls that the page makes on it. Only numbers and
/// places in the module's memory pass between it and the page. A call that fails gives 0 (null),
/// and attnscope_problem() says why.
extern "C" {

/// Memory for what the page hands over; 0 where there is none.
void* attnscope_reserve(unsigned bytes);
void attnscope_release(void* memory);

/// The numbers of a head, in this order, doubles all: dtype (a DType's number), queries, keys, dim,
/// scale, score (a ScoreFunction's number), whether all keys are there, lists of the mask (0:
/// none), runs of the mask. And its arrays: q and k; sums and exponents of the rows' norms, null
/// where there are none; the mask's row_lists [queries], starts [lists + 1] and runs [runs, 2],
/// null where there is none. Everything is copied. 1, and the map that was open is given up.
int attnscope_open(const double* facts, const void* q, const void* k, const double* sums,
                   const int32_t* exponents, const int32_t* row_lists, const int32_t* starts,
                   const int32_t* runs);

/// [rows, cols] entries from row `row` and key `key` on; of `quantity` (a Quantity's number); `own`
/// as PageMap::entries has it. Until the next call.
const float* attnscope_entries(int row, int rows, int key, int cols, int quantity, int own);

/// PageMap::texels: [2, rows, cols], the maxima and then the means. Until the next call.
const float* attnscope_texels(int level, int row, int rows, int col, int cols);

/// The two ends (low, high) of mass_ends() over `count` cells, at least one, in any order: their
/// values above 0 and their masses. Until the next call.
const double* attnscope_mass_ends(const float* values, const float* masses, int count);

/// PageMap::lse; NaN also where it fails.
double attnscope_lse(int row);

/// The reason of the last failure; until the next call.
const char* attnscope_problem();
}
