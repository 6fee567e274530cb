#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace attnscope {

/// Numbers that become others: `first` to `last` each another, from `to` on, or all the one.
struct NumberRule {
  std::string text;  ///< as the option has it
  int64_t first = 0, last = 0;
  int64_t to = 0;
  bool all_to_one = false;
  /// Of steps: the numbers are those of forwards, of which nobody told the step.
  bool of_forwards = false;
  /// Of layers: the name of a block without a number; then nothing else is looked at.
  std::string block = {};

  bool covers(int64_t number) const { return number >= first && number <= last; }
  int64_t target(int64_t number) const { return all_to_one ? to : to + (number - first); }
};

/// The rules that give a capture's calls labels after the recording.
struct RelabelRules {
  std::map<std::string, std::string> branches;
  std::vector<NumberRule> steps, layers;
  std::optional<int64_t> forwards_per_step;

  bool empty() const {
    return branches.empty() && steps.empty() && layers.empty() && !forwards_per_step;
  }
};

/// Reads lists of OLD=NEW, parted by commas; empty ones tell nothing. Throws Error(usage) naming
/// the option and the piece where one cannot be meant, or an OLD is told twice.
RelabelRules parse_relabel_rules(const std::string& branches, const std::string& steps,
                                 const std::string& layers,
                                 std::optional<int64_t> forwards_per_step);

}  // namespace attnscope
