#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/index_range.h"

namespace attnscope {

/// A list of numbers as users write it: comma-separated `3`, `3-7` (inclusive), `8-`, `all`,
/// `last`, `!4` (take out), `0-39:5` (every fifth, counted from the range's start), `:5` (every
/// fifth of all). Parsed once, resolved against the values that exist. Immutable; thread-safe.
class Selection {
 public:
  /// Selects everything.
  Selection() = default;
  /// Throws Error(usage) that quotes the text and points at the part that cannot be read.
  /// `option` is how messages name it, for example "--heads".
  static Selection parse(std::string_view text, std::string_view option);

  /// The selected ones of `recorded` (ascending, unique), ascending and unique. Numbers that are
  /// not recorded are left out (missing() tells them). Throws Error(usage) that names what exists
  /// where nothing is left.
  std::vector<int64_t> resolve(std::span<const int64_t> recorded) const;
  /// As resolve(), over the indices 0 … count−1.
  std::vector<int64_t> resolve_count(int64_t count) const;
  /// What the list names and `recorded` lacks, a line each: numbers, ends of ranges beyond the
  /// smallest and the largest, ranges that hold nothing. "--layers 3,40: 40 does not exist (there
  /// are 0-29)".
  std::vector<std::string> missing(std::span<const int64_t> recorded) const;

  bool is_all() const { return terms_.empty(); }
  const std::string& text() const { return text_; }

 private:
  struct Term {
    enum class Kind : uint8_t { number, range, last } kind = Kind::number;
    bool exclude = false;
    bool open_begin = false;  ///< the range starts at the smallest recorded value
    bool open_end = false;    ///< the range ends at the largest recorded value
    int64_t begin = 0;
    int64_t end = 0;  ///< inclusive
    int64_t step = 1;
    std::string text;
  };
  static Term parse_term(std::string_view part);
  static void mark(const Term& term, std::span<const int64_t> recorded, bool value,
                   std::vector<bool>& chosen);
  static std::string problem_of(const Term& term, std::span<const int64_t> recorded);
  /// "--heads 0-9: ", the beginning of messages.
  std::string prefix() const;

  std::string text_ = "all";
  std::string option_;
  std::vector<Term> terms_;
};

/// A half-open crop `A:B`, `:B`, `A:`, `:` of 0…count. Throws Error(usage) naming the valid range
/// when it is empty or outside.
IndexRange parse_crop(std::string_view text, std::string_view option, int64_t count);

/// "0-3, 7, 9-12" for messages; at most `limit` pieces, then "…".
std::string format_index_list(std::span<const int64_t> values, size_t limit = 12);

}  // namespace attnscope
