#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem/head_name.h"
#include "core/reduce/head_fields.h"

namespace attnscope {

/// A head as a condition looks at it: its name and, where they are known, its class and numbers.
struct ConditionedHead {
  const HeadName& name;
  std::optional<HeadClass> head_class = {};
  /// NaN or nothing where the number is not defined; called for fields of head_fields() alone.
  std::function<std::optional<double>(const HeadField&)> number = {};
};

/// A condition on heads, in words:
///
///     class=temporal entropy<5 layer>=10
///     not (text_mass>0.2 or class=sink,local) branch=cond
///
/// NAME OP VALUE compares one of step, layer, head, batch, chunk or a number of `stats` (= != < <=
/// > >=), or one of class, branch, kind, block, slot (= and !=, of which the last four know * for
/// any characters); = and != take several values with commas, numbers also ranges (layer=3-7).
/// Blanks and `and` join what must all hold, `or` what may; `not` and brackets as usual. A class's
/// name alone is class=NAME. A comparison with what is not recorded or not defined is neither true
/// nor false, also under `not`, and the head is not taken. Immutable; thread-safe.
class HeadCondition {
 public:
  /// Throws Error(usage) that names the word that cannot be read, with `option` before it.
  static HeadCondition parse(std::string_view text, std::string_view option);

  /// Nothing where it cannot be told: it compares with what the head does not have.
  std::optional<bool> truth(const ConditionedHead& head) const;
  bool holds(const ConditionedHead& head) const { return truth(head) == std::optional(true); }
  /// False where its name alone keeps a head from being taken, whatever its class and numbers.
  bool may_hold(const HeadName& name) const;
  /// True where it compares a class or a number of `stats`.
  bool asks_for_numbers() const { return asks_for_numbers_; }

  /// The numbers of `stats` that it compares, in its order.
  const std::vector<const HeadField*>& fields() const { return fields_; }

  /// One node of the tree; in head_condition.cpp.
  struct Node;

 private:
  std::shared_ptr<const Node> root_;  ///< null: all heads
  bool asks_for_numbers_ = false;
  std::vector<const HeadField*> fields_;
};

}  // namespace attnscope
