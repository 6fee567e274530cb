#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/heads/head_record.h"

namespace attnscope {

/// The numbers by which heads stand out.
struct StandingNumbers {
  const HeadRecord* record = nullptr;
  std::optional<double> own_way;
};

/// Heads that stand out by one rule: the three of largest value, of equal ones the first by layer
/// and head. Values of 0 and undefined ones stand out by nothing.
struct StandingRule {
  struct Head {
    size_t head = 0;  ///< its place on the page
    double value = 0;
    std::string text;  ///< one sentence
  };
  std::string rule;
  std::string title;  ///< of a head that it holds for, in three or four words
  std::string text;
  std::vector<Head> heads;
};

/// Rules that some head stands out by: temporal_score, text_mass, sink_mass (the mass of the five
/// columns in `sinks`; where a table does not have these, of the largest), own_way.
std::vector<StandingRule> standing_heads(std::span<const StandingNumbers> heads);
/// The heads of all rules, ascending.
std::vector<size_t> all_standing(std::span<const StandingRule> rules);

/// A head in sentences, of what its numbers say. `keys`: of its map; 0: not known.
std::vector<std::string> head_sentences(const StandingNumbers& head, int64_t keys);

}  // namespace attnscope
