#pragma once

#include <string>
#include <string_view>

namespace attnscope {

/// 128 bits that nobody can guess, as 32 hexadecimal digits. Throws Error(resource).
std::string new_web_token();

/// True where what came is the token; takes equally long for every wrong one of its length.
bool is_web_token(std::string_view came, std::string_view token);

}  // namespace attnscope
