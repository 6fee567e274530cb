#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/selection.h"
#include "core/problem/head_name.h"
#include "core/problem/head_set.h"

namespace attnscope {

/// The selection by --steps --layers --heads --batch --branch --kind --blocks --slots --chunks
/// --pick --from --where. Layers and chunks leave out the calls that have none, unless all are
/// asked for.
struct CallSelection {
  Selection steps, layers, heads, batch;
  std::vector<std::string> branches;     ///< patterns with *; empty: all
  std::vector<std::string> kinds;        ///< patterns with *; empty: all
  std::vector<std::string> blocks = {};  ///< patterns with *; empty: all
  std::vector<std::string> slots = {};   ///< patterns with *; empty: all
  Selection chunks = {};
  std::vector<std::shared_ptr<const HeadSet>> sets = {};  ///< a head is in each of them
  std::function<bool(const HeadName&)> condition = {};    ///< empty: all
  std::string condition_text = {};                        ///< "--where layer>=10"
};

/// A selection held against the heads that there are: which of them it takes, and what it names
/// that is not there. First all heads are added, then it is resolved, then asked. One thread's.
class HeadChoice {
 public:
  /// `where` is how messages name what has the heads: "this capture".
  HeadChoice(const CallSelection& selection, std::string where);

  /// Adds heads first.head … first.head + count − 1, which differ in nothing else.
  void add(const HeadName& first, int64_t count = 1);
  /// Throws Error(usage) naming what exists where a part of the selection leaves nothing.
  void resolve();
  /// True of a head that differs in nothing but its number from one that is taken.
  bool takes_call(const HeadName& name) const;
  bool takes(const HeadName& name) const;
  /// Names what the selection asks for and none of the heads has, a line each, to be told.
  const std::vector<std::string>& missing() const { return missing_; }
  /// The error where, of all heads, none is taken.
  Error nothing_left() const;

 private:
  /// Numbers or names of one kind that the heads have, and those of them that are chosen.
  struct Numbers {
    std::set<int64_t> there;
    std::vector<int64_t> chosen;
    bool has(int64_t number) const;
  };
  struct Names {
    std::set<std::string> there, chosen;
  };
  void resolve_numbers(const Selection& selection, Numbers& numbers);
  void resolve_names(const std::vector<std::string>& patterns, const char* option, Names& names);

  const CallSelection selection_;
  const std::string where_;
  Numbers steps_, layers_, heads_, batch_, chunks_;
  Names branches_, kinds_, blocks_, slots_;
  std::vector<std::vector<bool>> found_;  ///< of each set
  std::vector<std::string> missing_;
};

}  // namespace attnscope
