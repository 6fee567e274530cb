#pragma once

#include "core/base/place_order.h"
#include "core/problem/attention_problem.h"

namespace attnscope {

/// The call whose map has its rows and columns in other orders: entry (i, j) of every head is entry
/// (places.rows.token(i), places.keys.token(j)) of `problem`'s. Shares its tensors; has no V, and
/// of its tokens nothing is known. Each order that is not the identity has as many places as its
/// side has tokens.
AttentionProblem reordered_problem(const AttentionProblem& problem, const MapPlaces& places);

}  // namespace attnscope
