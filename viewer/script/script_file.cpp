#include "viewer/script/script.h"

#include <fmt/core.h>

#include <span>

#include "core/base/error.h"
#include "io/files/input_file.h"

// Scripts that are read from files.

namespace attnscope {
namespace {

constexpr int64_t kMaxScriptBytes = 1 << 20;

}  // namespace

Script read_script(const std::filesystem::path& file) {
  const InputFile input(file);
  if (input.size() > kMaxScriptBytes) {
    throw file_error(file.string(), "",
                     fmt::format("is too long for a script (got {} bytes, limit {})", input.size(),
                                 kMaxScriptBytes));
  }
  std::string text(static_cast<size_t>(input.size()), '\0');
  input.read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  if (text.find('\0') != std::string::npos) {
    throw file_error(file.string(), "", "is no text: a script is one command a line");
  }
  return parse_script(text, file.string());
}

}  // namespace attnscope
