#pragma once

#include <string>
#include <string_view>

namespace attnscope {

/// 128 bits that nobody can guess, as 32 hexadecimal digits. Throws Error(resource).
std::string new_web_token();

/// Whether what came is the token; takes as long for any that is not, however much of it is right.
bool is_web_token(std::string_view came, std::string_view token);

}  // namespace attnscope
