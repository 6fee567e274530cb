#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace attnscope {

/// Parses JSON from a file nobody vouches for: valid UTF-8, at most 64 levels deep, no key twice in
/// an object, nothing after the value. Throws Error(file) "FILE: WHERE: …" with the byte.
nlohmann::json parse_strict_json(std::string_view text, const std::string& file,
                                 const std::string& where);

}  // namespace attnscope
