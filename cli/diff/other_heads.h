#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/problem/head_name.h"

namespace attnscope {

/// The values that side B has in place of A's; empty: A's own. Numbers as they were recorded.
struct OtherValues {
  std::string step, layer, chunk, branch, block, slot, batch, head;
  bool any() const;
};

/// The heads that side B can be.
class OtherHeads {
 public:
  /// `where`: what has them, for messages.
  OtherHeads(const std::vector<HeadName>& heads, std::string where);

  /// The head of A's name, but for `other`; the first by name where several are meant, as a branch
  /// that is named leaves the batch item open. Throws Error(usage) where there is none, or a value
  /// is no number.
  const HeadName& find(const HeadName& a, const OtherValues& other) const;

 private:
  /// The values that find() always compares: step, head, chunk and slot.
  using Key = std::tuple<int64_t, int64_t, int64_t, std::string>;
  static Key key_of(const HeadName& name);

  std::map<Key, std::vector<HeadName>> heads_;  ///< each list ascending
  const std::string where_;
};

/// A head of the selection with that of the other side. Throws Error(usage) as find(), and where
/// `same_side` and both are one.
std::vector<std::pair<HeadName, HeadName>> pair_heads(const std::vector<HeadName>& selected,
                                                      const OtherHeads& others,
                                                      const OtherValues& other, bool same_side);

}  // namespace attnscope
