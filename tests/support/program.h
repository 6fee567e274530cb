#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace attnscope::test {

struct ProgramResult {
  int exit_code = -1;      ///< 128 + signal where a signal ended it
  std::string out;         ///< standard output
  std::string err;         ///< standard error
  int64_t peak_bytes = 0;  ///< peak resident memory
};

struct ProgramSettings {
  /// Sent, where not 0, once the program watches for it (SIGKILL: at once) and `signal_from`, where
  /// it is named, exists. Signals at other moments: tests/cli/common/fault_settings.h.
  int signal = 0;
  std::string signal_from = {};
  int64_t max_file_bytes = 0;  ///< RLIMIT_FSIZE, where not 0
  int64_t soft_files = 0;      ///< soft RLIMIT_NOFILE, where not 0
  bool close_stderr = false;
  std::vector<std::string> environment = {};  ///< NAME=VALUE, added
  std::string stdout_path = {};               ///< instead of a file that becomes `out`
};

/// Runs attnscope with these arguments, no standard input, and waits for it.
ProgramResult run_attnscope(const std::vector<std::string>& arguments,
                            const ProgramSettings& settings = {});

std::string sample(const std::string& name);
std::string test_data(const std::string& name);
std::string read_file(const std::filesystem::path& path);

}  // namespace attnscope::test
