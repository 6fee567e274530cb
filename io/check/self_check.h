#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "io/capture/capture.h"
#include "io/check/computed_rows.h"

namespace attnscope {

/// `approximates`: differs, but by no more than a kernel may that is known to approximate.
enum class CheckVerdict : uint8_t { agrees, differs, approximates, nothing };
/// "agrees", "differs", "approximates", "nothing to check against".
std::string_view verdict_name(CheckVerdict verdict);

/// A probable cause why a call does not agree with its own outputs.
struct Suspect {
  /// scale, mask, layout, batch, heads, token-order, rope, norm, layer, values, backend or unknown.
  std::string culprit;
  std::string explanation;  ///< what was changed, and what helps; one line
  double error = 0;         ///< that is left
};

/// The result of checking one call's Q, K, V and facts against its recorded outputs (else LSEs).
struct CallCheck {
  const CallEntry* call = nullptr;
  CheckVerdict verdict = CheckVerdict::nothing;
  std::string against;   ///< "output rows", "LSE"; empty: nothing
  std::string reason;    ///< why there is nothing, and how to have it; or what could not be used
  std::string backend;   ///< who computed the rows
  std::string refusal;   ///< what the backend says of values that it cannot compute with
  double error = 0;      ///< of the worst row
  double tolerance = 0;  ///< what dtypes and kernels may differ by
  int64_t batch = 0, head = 0, row = 0;                              ///< of the worst row
  int64_t heads_checked = 0, heads_differing = 0, rows_checked = 0;  ///< rows: of each head
  std::optional<Suspect> suspect;
  /// Of a kernel that approximates: how far its outputs are from exact attention, by batch item and
  /// head.
  struct HeadError {
    int64_t batch = 0, head = 0;
    double mean = 0, worst = 0;  ///< over the rows
  };
  std::vector<HeadError> head_errors;
};

/// From which mean error on a kernel that approximates is taken for one that was recorded wrongly.
inline constexpr double kMostApproximation = 0.5;

/// How much of a call is checked: this many heads and rows of each, spread evenly; 0: all.
struct CheckDepth {
  int64_t heads = 0;
  int64_t rows = 0;
  /// Only heads of these; empty: of all.
  std::vector<int64_t> batch_items = {}, head_numbers = {};
};

/// Has the backend recompute recorded rows of the softmax attention that the facts describe, from
/// at most `threads` threads (fewer where the budget does not hold a head for each), and compares.
/// The error of a row is ‖o − o′‖ / (‖o‖ + √(Σ P²‖v‖²)), the second term being what rounding of
/// single products can leave where they cancel out; of an LSE, |l − l′|; of rows that the backend
/// refuses, infinite. Throws Error(file) when the data cannot be read, Error(resource) where the
/// budget does not hold one head, Error(interrupted) soon after a stop is requested.
CallCheck check_call(const CallEntry& call, const CheckDepth& depth, const CheckMeans& means,
                     int threads, std::stop_token stop = {});

/// For a check that differs: tries the usual mistakes on the worst head, in plain loops without the
/// backend, and says which of them makes its outputs agree, else which comes nearest. `capture`
/// gives other layers and branches.
Suspect find_culprit(const CallCheck& check, const Capture& capture, std::stop_token stop = {});

/// A few rows of as many calls as a fraction of a second allows, at least of one: the first that
/// differs, or nothing. Calls of which the budget does not hold a head, so that no map of them can
/// be computed either, are passed over.
std::optional<CallCheck> quick_check(const Capture& capture, const CheckMeans& means,
                                     std::stop_token stop = {});
/// The warning about a call that quick_check() found, one line.
std::string quick_check_warning(const CallCheck& check);

}  // namespace attnscope
