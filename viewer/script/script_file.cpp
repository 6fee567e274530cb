#include "viewer/script/script.h"

#include <fmt/core.h>

#include <span>

#include "core/base/error.h"
#include "io/files/file_text.h"

// Scripts that are read from files.

namespace attnscope {
namespace {

constexpr int64_t kMaxScriptBytes = 1 << 20;

}  // namespace

Script read_script(const std::filesystem::path& file) {
  const std::string text = read_file_text(file, "a script", kMaxScriptBytes);
  if (text.find('\0') != std::string::npos) {
    throw file_error(file.string(), "", "is no text: a script is one command a line");
  }
  return parse_script(text, file.string());
}

}  // namespace attnscope
