#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/problem/head_name.h"

namespace attnscope {

/// Does a column of this title name a head: "step", "layer", "branch", "kind", "batch", "head",
/// "block", "slot", "chunk", "forward", "of_step" or "call"?
bool names_head(std::string_view title);

/// The columns by which CSV tables name heads. The first six are always there, the others where a
/// head of the table states them; they stand in the order of names_head(). Not thread-safe.
class HeadColumns {
 public:
  HeadColumns();

  /// A head of the table: what it states gets a column.
  void add(const HeadName& name);
  /// A column that is there whatever heads state; its title is one of those that name a head.
  void add(std::string_view title);

  std::vector<std::string> titles() const;
  /// The fields of a head's line, as many as there are titles; empty where nobody recorded it, and
  /// for a layer outside the main stack.
  std::vector<std::string> fields(const HeadName& name) const;

 private:
  std::vector<bool> there_;  ///< of each title that names a head
};

}  // namespace attnscope
