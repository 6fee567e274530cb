#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/selection.h"
#include "core/heads/head_sketch.h"

namespace attnscope {

/// Which heads of the atlas are shown: words of which all must hold, apart by white space.
///
///     layers=0-7 heads=3 temporal entropy<5
///
/// `layers=LIST` and `heads=LIST` (lists as on the command line), `class=NAME,…` or a class's name
/// alone, and METRIC OP VALUE with a number of `stats` and < <= > >=. An immutable value.
class AtlasFilter {
 public:
  /// Everything.
  AtlasFilter() = default;
  /// Throws Error(usage) naming the word that cannot be read.
  static AtlasFilter parse(std::string_view text);

  /// By layer and head as recorded, which are at most `last_layer` and `last_head`. Throws
  /// Error(usage) where a list has none of these.
  bool matches(int64_t layer, int64_t head, int64_t last_layer, int64_t last_head) const;
  /// By class and numbers; a sketch that is not there, or a number that is not defined, matches
  /// nothing that asks for it.
  bool matches(const HeadSketch* sketch) const;
  bool asks_for_numbers() const { return !classes_.empty() || !bounds_.empty(); }

 private:
  enum class Compare : uint8_t { less, less_equal, greater, greater_equal };
  struct Bound {
    const HeadField* field = nullptr;
    Compare compare = Compare::less;
    double value = 0;
  };
  void add_word(const std::string& word);
  bool add_bound(const std::string& word);
  void add_classes(std::string_view names, const std::string& word);

  std::optional<Selection> layers_, heads_;
  std::vector<HeadClass> classes_;
  std::vector<Bound> bounds_;
};

}  // namespace attnscope
