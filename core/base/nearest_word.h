#pragma once

#include <span>
#include <string>
#include <string_view>

namespace attnscope {

/// The candidate nearest to `word` by edit distance, or empty when none is near.
std::string nearest_word(std::string_view word, std::span<const std::string> candidates);

}  // namespace attnscope
