#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/mask/mask.h"
#include "core/problem/sinks.h"
#include "core/tensor/row_source.h"

namespace attnscope {

/// A few query rows of softmax attention, told by what it is computed from.
struct AttendInputs {
  RowSourcePtr q;  ///< [Nq, d]
  RowSourcePtr k;  ///< [Nk, d]
  RowSourcePtr v;  ///< [Nk, dv], or null: only the LSE is wanted
  double scale = 0;
  double cap = 0;  ///< logits become cap·tanh(logit/cap) before the mask; 0: they stay
  Sinks sinks;     ///< logits in the denominator alone
  Mask mask;
  int64_t batch = 0, head = 0;  ///< the head, as mask and sinks count
};

/// The outputs and LSEs of some rows. A fully masked row has the sink as lse, and zeros.
struct AttendedRows {
  int64_t width = 0;            ///< dv; 0 without V
  std::vector<double> outputs;  ///< softmax(scale·QKᵀ + mask)·V, [rows, width]
  std::vector<double> lse;      ///< [rows]
  /// √(Σ_j P_j²·‖V_j‖²) of each row: what independent relative errors of the terms P_j·V_j grow to,
  /// as a multiple of one such error.
  std::vector<double> spread;
};

/// Computes the rows (indices of the query sequence) over all keys, 256 keys at a time: logits in
/// float32, sums over blocks in double. Memory: rows × dv doubles and a block. Thread-safe. Not the
/// engine: it serves single rows of inputs that are no tensor of a file.
AttendedRows attend_rows(const AttendInputs& inputs, std::span<const int64_t> rows);

}  // namespace attnscope
