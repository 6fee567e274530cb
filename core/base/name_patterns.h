#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

/// True of a name that fits the pattern, in which * stands for any characters.
bool matches_pattern(std::string_view pattern, std::string_view name);
/// True of a name that fits one of the patterns; of every name where there are none.
bool matches_any(std::span<const std::string> patterns, std::string_view name);

/// That none of `names` matches the pattern: "--slots atn1: not in this capture, did you mean
/// attn1? (it has attn1, attn2)"; empty where one does. `where` is "this capture".
std::string pattern_problem(const std::string& pattern, const std::set<std::string>& names,
                            std::string_view option, std::string_view where);

}  // namespace attnscope
