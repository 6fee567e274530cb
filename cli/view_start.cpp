#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "cli/common/command.h"
#include "cli/view_options.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

/// The words that this process was started with, the program's name first.
std::vector<std::string> own_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (size_t at = 0; at < bytes.size(); at += words.back().size() + 1) {
    words.emplace_back(bytes.c_str() + at);
  }
  return words;
}

/// The window's program is linked to it even where it draws without a display; a server may have
/// none, and the loader would say neither what needs it nor what brings it.
void require_x11() {
#ifdef ATTNSCOPE_WINDOW_NEEDS_X11
  void* const library = ::dlopen("libX11.so.6", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error(ErrorCode::unavailable,
                "view: the window needs libX11.so.6, also without a display (Debian: libx11-6; "
                "it draws by libgl1, without a display by libegl1 and libgl1-mesa-dri)");
  }
  ::dlclose(library);
#endif
}

/// Becomes the program of the window, which takes the same words. Throws Error(unavailable) where
/// it cannot be started.
[[noreturn]] void become_window() {
  require_x11();
  std::error_code error;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "attnscope-window";
  std::vector<std::string> words = own_words();
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  throw Error(ErrorCode::unavailable, "view: " + program.string() + ", which belongs beside " +
                                          "attnscope, cannot be started: " + std::strerror(errno));
}

}  // namespace

/// In builds whose window is a program of its own. What the words cannot mean is said by this one.
Command add_view_command(CLI::App& app) {
  auto options = std::make_shared<ViewRequest>();
  CommandParser command = add_view_options(app, *options);
  return {command, [options]() -> int { become_window(); }};
}

}  // namespace attnscope
