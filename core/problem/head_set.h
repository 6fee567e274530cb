#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/problem/head_name.h"

namespace attnscope {

/// Heads by some of the facts that name them; a fact that is not given is any.
struct HeadPattern {
  std::optional<int64_t> step, layer, batch, chunk;
  std::optional<std::string> branch, kind, block, slot;
  int64_t head = 0;

  /// Reads "3.1" (layer.head), "10:3.1" (step:layer.head), "refiner.0.1" and "refiner.0/attn.1"
  /// (block[/slot].head, where the last dot separates), both perhaps with a step. Throws
  /// Error(usage) that quotes the text, with `option` before it.
  static HeadPattern parse(std::string_view text, std::string_view option);
  /// Of all facts that the name has.
  static HeadPattern of(const HeadName& name);
  bool matches(const HeadName& name) const;
  /// All facts that are given, by their names: equal patterns have the same.
  std::string facts() const;
  /// As parse() reads it, with the branch and the batch item behind it where they are given:
  /// "10:3.1 cond b0".
  std::string text() const;
};

/// A list of heads by what is known of each. Immutable; thread-safe.
class HeadSet {
 public:
  /// `source` is how messages name it: "--pick", "--from picked.json". Not empty.
  HeadSet(std::vector<HeadPattern> patterns, std::string source);

  bool contains(const HeadName& name) const;
  /// Marks in `found`, [size()], the patterns that match the head.
  void mark(const HeadName& name, std::vector<bool>& found) const;
  size_t size() const { return patterns_.size(); }
  const std::string& source() const { return source_; }
  /// "--from picked.json: 2 of 40 heads are not in this capture: 3.99, 40.1"; empty where all are
  /// found.
  std::string missing(const std::vector<bool>& found, std::string_view where) const;
  /// The patterns' texts, one a line: sets with the same text have the same heads.
  std::string text() const;

 private:
  /// Calls `use` with the number of each pattern that matches, until it returns true.
  template <typename Use>
  bool find(const HeadName& name, const Use& use) const;

  std::vector<HeadPattern> patterns_;
  std::string source_;
  /// Numbers of the patterns by layer (nothing: any) and head.
  std::map<std::pair<std::optional<int64_t>, int64_t>, std::vector<size_t>> places_;
};

}  // namespace attnscope
