#include "tests/support/hidden_window.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/project_paths.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

namespace attnscope::test {

bool can_open_windows() {
  static const bool installed = std::system("command -v xvfb-run >/dev/null 2>&1") == 0;
  if (!installed) skip_test("xvfb-run is not installed (scripts/setup tests)");
  return installed;
}

std::string shell_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

WindowResult run_window(const std::string& folder, const std::vector<std::string>& arguments,
                        const std::string& script) {
  std::string command = shell_word(program_path()) + " view";
  for (const std::string& argument : arguments) command += " " + shell_word(argument);
  if (!script.empty()) {
    std::ofstream(folder + "/script.txt") << script;
    command += " --script script.txt";
  }
  // The program's exit code is written down within: xvfb-run has failures of its own when several
  // are started at once, and is then tried again.
  command += " >out.txt 2>err.txt </dev/null; echo $? >code.txt";
  const std::string outer = "cd " + shell_word(folder) +
                            " && LIBGL_ALWAYS_SOFTWARE=1 ASAN_OPTIONS=detect_leaks=0 timeout 240 "
                            "xvfb-run -a -s '-screen 0 1280x800x24' sh -c " +
                            shell_word(command) + " >/dev/null 2>&1";
  std::filesystem::remove(folder + "/code.txt");
  for (int attempt = 0; attempt < 3; ++attempt) {
    (void)!std::system(outer.c_str());
    if (std::filesystem::exists(folder + "/code.txt")) break;
  }
  if (!std::filesystem::exists(folder + "/code.txt")) return {-1, "", "xvfb-run failed"};
  return {std::stoi(read_bytes(folder + "/code.txt")), read_bytes(folder + "/out.txt"),
          read_bytes(folder + "/err.txt")};
}

}  // namespace attnscope::test
