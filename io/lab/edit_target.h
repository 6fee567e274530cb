#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace attnscope {

/// The numbers of a head under an edit that a choice may go by (docs/lab.md).
enum class EditMeasure : uint8_t { output_error, recall, recall_p05 };

/// Which numbers an edit has to keep. A value.
struct EditTarget {
  EditMeasure measure = EditMeasure::output_error;
  double mean = 0;   ///< over the measured forwards of a scope
  double worst = 0;  ///< of one head in one forward
  std::string text;  ///< as it was written

  bool is_error() const { return measure == EditMeasure::output_error; }
  /// "output_error", "recall", "recall_p05".
  std::string_view name() const;
  /// The number where nothing is left out.
  double exact() const { return is_error() ? 0 : 1; }
  double worse(double a, double b) const { return (a > b) == is_error() ? a : b; }
  /// True where the number `a` is strictly better than `b`.
  bool is_better(double a, double b) const { return is_error() ? a < b : a > b; }
  bool keeps(double mean_number, double worst_number) const {
    return !is_better(mean, mean_number) && !is_better(worst, worst_number);
  }
};

/// "output_error<=0.05", "recall>=0.95" or "recall_p05>=0.85", a limit of the mean; after a blank
/// "worst<=0.1" or "worst>=0.8", otherwise the worst keeps the mean's limit. `option` is how
/// messages name it. Throws Error(usage), with the nearest word where a name is unknown.
EditTarget parse_target(std::string_view text, std::string_view option = "--target");

}  // namespace attnscope
