#include "io/files/file_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "core/base/error.h"
#include "io/files/input_file.h"

namespace attnscope {
namespace {

std::string read_text(const InputFile& file, int64_t bytes) {
  std::string text(static_cast<size_t>(bytes), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

std::string read_file_text(const std::filesystem::path& file, const char* what, int64_t most) {
  const InputFile input(file);
  if (input.size() <= most) return read_text(input, input.size());
  throw file_error(
      file.string(), "",
      fmt::format("is too long for {} (got {} bytes, limit {})", what, input.size(), most));
}

std::string beginning_of_file(const std::filesystem::path& file, size_t most) {
  try {
    const InputFile input(file);
    return read_text(input, std::min(input.size(), static_cast<int64_t>(most)));
  } catch (const Error&) {
    return "";
  }
}

}  // namespace attnscope
