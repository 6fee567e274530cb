#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

/// Whether a name is what the pattern says, in which * stands for any characters.
bool matches_pattern(std::string_view pattern, std::string_view name);
/// Whether a name is what one of the patterns says; where there are none, every name is.
bool matches_any(std::span<const std::string> patterns, std::string_view name);

/// Throws Error(usage) for the first pattern that none of `names` matches: "--slots atn1: not in
/// this capture, did you mean attn1? (it has attn1, attn2)". `where` is "this capture".
void check_patterns(std::span<const std::string> patterns, const std::set<std::string>& names,
                    std::string_view option, std::string_view where);

}  // namespace attnscope
