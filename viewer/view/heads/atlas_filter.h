#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/selection.h"
#include "core/heads/head_condition.h"
#include "core/heads/head_sketch.h"

namespace attnscope {

/// Which heads of the atlas are shown: a condition on heads, as `--where` takes it, and beside it
/// `layers=LIST` and `heads=LIST` (lists as on the command line), of which all must hold.
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

  /// The recorded numbers are at most `last_layer` and `last_head`. A sketch that is not there, or
  /// a number that is not defined, matches nothing that asks for it. Throws Error(usage) where a
  /// list has none of the numbers up to the last.
  bool matches(const HeadName& head, const HeadSketch* sketch, int64_t last_layer,
               int64_t last_head) const;

 private:
  std::optional<Selection> layers_, heads_;
  HeadCondition condition_;
};

}  // namespace attnscope
