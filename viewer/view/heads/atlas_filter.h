#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/selection.h"
#include "core/heads/head_condition.h"
#include "core/heads/head_sketch.h"

namespace attnscope {

/// Which heads of the atlas are shown: `layers=LIST` and `heads=LIST` (lists as on the command
/// line), and behind them a condition on heads, as `--where` takes it, of which all must hold. The
/// lists may stand behind a condition without or, not and brackets.
///
///     layers=0-7 temporal entropy<5
///
/// An immutable value.
class AtlasFilter {
 public:
  /// Everything.
  AtlasFilter() = default;
  /// Throws Error(usage) naming the word that cannot be read.
  static AtlasFilter parse(std::string_view text);

  /// Of heads whose numbers, as recorded, are at most these. Throws Error(usage) where a list has
  /// none of the numbers up to the last.
  void resolve(int64_t last_layer, int64_t last_head);
  /// After resolve(), where there are lists. A sketch that is not there, or a number that is not
  /// defined, matches nothing that asks for it.
  bool matches(const HeadName& head, const HeadSketch* sketch) const;

 private:
  using Numbers = std::optional<std::vector<int64_t>>;
  std::optional<Selection> layers_, heads_;
  Numbers layer_numbers_, head_numbers_;  ///< of the lists, ascending
  HeadCondition condition_;
};

}  // namespace attnscope
