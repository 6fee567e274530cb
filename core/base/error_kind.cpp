#include "core/base/error_kind.h"

#include <array>
#include <utility>

namespace attnscope {
namespace {

constexpr std::array kErrorKinds{
    std::pair{ErrorCode::usage, std::string_view("usage")},
    std::pair{ErrorCode::file, std::string_view("file")},
    std::pair{ErrorCode::value, std::string_view("value")},
    std::pair{ErrorCode::resource, std::string_view("resource")},
    std::pair{ErrorCode::unavailable, std::string_view("unavailable")},
    std::pair{ErrorCode::interrupted, std::string_view("interrupted")}};

}  // namespace

std::string_view error_kind(ErrorCode code) {
  for (const auto& [each, word] : kErrorKinds) {
    if (each == code) return word;
  }
  return "";
}

std::optional<ErrorCode> parse_error_kind(std::string_view word) {
  for (const auto& [code, each] : kErrorKinds) {
    if (each == word) return code;
  }
  return std::nullopt;
}

}  // namespace attnscope
