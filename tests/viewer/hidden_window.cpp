#include "tests/viewer/hidden_window.h"

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>

#include "tests/catch.h"
#include "tests/temporary_folder.h"

namespace attnscope::test {

bool can_open_windows() {
#if defined(__SANITIZE_THREAD__)
  WARN("skipped: the drawing library's own threads look like races to ThreadSanitizer");
  return false;
#else
  static const bool installed = std::system("command -v xvfb-run >/dev/null 2>&1") == 0;
  if (!installed) WARN("skipped: xvfb-run is not installed");
  return installed;
#endif
}

std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

WindowResult run_window(const std::string& folder, const std::vector<std::string>& arguments,
                        const std::string& script) {
  std::string command = "cd " + quoted(folder) +
                        " && LIBGL_ALWAYS_SOFTWARE=1 ASAN_OPTIONS=detect_leaks=0 timeout 240 "
                        "xvfb-run -a -s '-screen 0 1280x800x24' " +
                        quoted(ATTNSCOPE_PROGRAM) + " view";
  for (const std::string& argument : arguments) command += " " + quoted(argument);
  if (!script.empty()) {
    std::ofstream(folder + "/script.txt") << script;
    command += " --script script.txt";
  }
  // xvfb-run without -e keeps what its child prints.
  command += " >out.txt 2>err.txt </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_bytes(folder + "/out.txt"),
          read_bytes(folder + "/err.txt")};
}

}  // namespace attnscope::test
