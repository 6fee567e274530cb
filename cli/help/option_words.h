#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

/// The words that the value of a command's option can be, or can begin with ("topk:"); empty where
/// they are no fixed words. For completion: an option takes other values, too.
std::vector<std::string> option_words(std::string_view command, std::string_view option);

}  // namespace attnscope
