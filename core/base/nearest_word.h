#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace attnscope {

/// The candidate nearest to `word` by edit distance, or empty when none is near.
std::string nearest_word(std::string_view word, std::span<const std::string> candidates);

/// "product logit: no such name, did you mean logits? (weights, logits, lift)", as Error(usage).
Error unknown_name(std::string_view what, const std::string& name,
                   const std::vector<std::string>& names);

}  // namespace attnscope
