#pragma once

#include <string>
#include <vector>

namespace attnscope::test {

/// True where windows can be tried here: xvfb-run is installed. Else marks the test case as skipped
/// and says why, so that it is seen.
bool can_open_windows();

struct WindowResult {
  int exit_code = -1;
  std::string out, err;
};

/// Runs `attnscope view ARGUMENTS` under a virtual screen of 1280×800 with software rendering;
/// `script` (where not empty) is its script. In the folder `folder`.
WindowResult run_window(const std::string& folder, const std::vector<std::string>& arguments,
                        const std::string& script = {});

/// `text` as one word of a shell.
std::string shell_word(const std::string& text);

}  // namespace attnscope::test
