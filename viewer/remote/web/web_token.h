#pragma once

#include <string>
#include <string_view>

namespace attnscope {

/// 128 bits that nobody can guess, as 32 hexadecimal digits. Throws Error(resource).
std::string new_web_token();

/// The token that a file keeps: 32 hexadecimal digits in lower case and perhaps a newline. Where
/// there is no file one is made, with a new token, that nobody but its owner may open (0600).
/// Throws Error(file) where it is no regular file of one's own that nobody else may read or write,
/// where something else stands in it, and where it cannot be read or made. Symbolic links are not
/// followed. Of several that make it at once all get the same token.
std::string token_of_file(const std::string& path);

/// True where what came is the token; takes equally long for every wrong one of its length.
bool is_web_token(std::string_view came, std::string_view token);

}  // namespace attnscope
