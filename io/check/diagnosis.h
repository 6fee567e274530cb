#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/problem/rope.h"
#include "io/check/recorded_rows.h"
#include "io/check/self_check.h"

namespace attnscope {

/// Tries what may have gone wrong with one head that differs, until something makes its recorded
/// rows agree. Not thread-safe.
class Diagnosis {
 public:
  /// Borrows all; `check` is of a call of `capture`.
  Diagnosis(const CallCheck& check, const Capture& capture, std::stop_token stop);
  Suspect run();

 private:
  /// One thing that may be wrong, as inputs that make up for it.
  struct Try {
    std::string culprit;
    std::string explanation;  ///< what makes the outputs agree, beginning with "with"
    AttendInputs inputs;
    double most = 1;  ///< share of the error that it may leave
  };

  /// A rotary embedding that suits the head; without q: none.
  struct Rotation {
    std::string name;  ///< as --rope takes it
    std::optional<HeadRotation> q, k;
  };
  std::vector<Rotation> suiting_rotations() const;

  // Each returns true as soon as something fits; suspect_ then tells what.
  bool attempt(const Try& attempt);
  bool find_values();
  bool try_plain_loops();
  bool try_scales();
  bool try_masks();
  bool find_sink();
  bool find_row_sinks(const AttendedRows& computed);
  bool try_without_sinks();
  bool try_lse_forms();
  bool find_place_biases();
  bool find_cap();
  bool try_layouts();
  bool try_batches();
  bool try_heads();
  bool try_token_orders();
  bool try_positions();
  bool try_layers();
  bool find_same_rows();
  bool fit_scale();
  void fit_other_heads(double scale);
  /// The power of two within half octaves [begin / 2, end / 2] whose factor leaves least error.
  double best_octaves(IndexRange halves, const std::function<double(double)>& error_at) const;
  /// The factor of the head's scale that leaves least error in these rows of it.
  double best_scale_factor(int64_t head, const RecordedRows& recorded) const;

  bool try_other_call(const std::string& culprit, const CallEntry& other, const std::string& name);
  /// The stated inputs of call_ with `parts` ("q", "k", "v", several) of another call or head.
  AttendInputs taken_from(const CallEntry& other, int64_t batch, int64_t head,
                          const std::string& parts) const;
  double error_of(const AttendInputs& inputs, const RecordedRows& recorded) const;
  AttendInputs stated() const { return stated_inputs(call_, batch_, head_); }
  Suspect unknown() const;

  const CallCheck& check_;
  const Capture& capture_;
  const std::stop_token stop_;
  const CallEntry& call_;
  const AttentionProblem& problem_;
  const int64_t batch_, head_;
  const RecordedRows few_;  ///< what everything is tried on
  const RecordedRows all_;  ///< what must agree in the end
  Suspect suspect_;
  Suspect nearest_;
};

}  // namespace attnscope
