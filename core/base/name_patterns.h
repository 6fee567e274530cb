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

/// Throws Error(usage) for the first pattern that none of `names` matches: "--slots atn1: not in
/// this capture, did you mean attn1? (it has attn1, attn2)". `where` is "this capture".
void check_patterns(std::span<const std::string> patterns, const std::set<std::string>& names,
                    std::string_view option, std::string_view where);

}  // namespace attnscope
