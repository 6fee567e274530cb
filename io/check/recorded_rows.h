#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/reference/attend_rows.h"
#include "io/capture/capture.h"

namespace attnscope {

/// The outputs (else LSEs) that one head of a call recorded, or some of them, spread evenly.
class RecordedRows {
 public:
  /// True where the call has outputs and V to compare with; has_any: those or LSEs.
  static bool has_outputs(const CallEntry& call);
  static bool has_any(const CallEntry& call);
  /// How many rows there are.
  static int64_t count(const CallEntry& call);

  /// `rows` of them; 0 or more than there are: all. Throws Error(file).
  RecordedRows(const CallEntry& call, int64_t batch, int64_t head, int64_t rows);

  /// Indices in the query sequence.
  const std::vector<int64_t>& rows() const { return rows_; }
  /// The largest error, and which of rows() has it.
  struct Worst {
    double error = 0;
    size_t row = 0;
    double mean = 0;  ///< of the errors of all rows that were compared
  };
  Worst compare(const AttendedRows& computed) const;
  /// The sink that rows computed without one lack, in the middle of what they tell of it: outputs
  /// by the part of theirs that was recorded, LSEs by what they are more. Nothing where they have
  /// no less and no more.
  std::optional<double> missing_sink(const AttendedRows& computed) const;
  /// That of each of rows(), −∞ where it lacks none.
  std::vector<double> missing_sinks(const AttendedRows& computed) const;
  /// True where outputs are compared, not LSEs.
  bool are_outputs() const { return width_ > 0; }

 private:
  std::optional<double> missing_sink_of(const AttendedRows& computed, size_t row) const;

  std::vector<int64_t> rows_;
  int64_t width_ = 0;          ///< 0: LSEs
  std::vector<float> values_;  ///< [rows, width] or [rows]
};

/// The head's inputs as the call states them; without V where outputs cannot be compared.
AttendInputs stated_inputs(const CallEntry& call, int64_t batch, int64_t head);

/// The error that rows of a right capture may have: kernels round products and results to the
/// coarsest of the dtypes, and float32 products may be TF32.
double check_tolerance(const CallEntry& call);

}  // namespace attnscope
