#pragma once

#include <cstdint>

/// What the module exports. Numbers and places in the module's memory alone pass between it and the
/// page: everything else is made of them on the other side.
extern "C" {

/// One head, of queries and keys of `dtype` (a DType's number), [queries, dim] and [keys, dim],
/// which are copied. 1, or 0 where they make no head.
int attnscope_open(const void* q, const void* k, int dtype, int queries, int keys, int dim);
}
