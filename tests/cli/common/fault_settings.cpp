#include "tests/cli/common/fault_settings.h"

#include <filesystem>
#include <stdexcept>
#include <utility>

#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"

namespace attnscope::test {

ProgramSettings with_faults(std::vector<std::string> variables) {
  ProgramSettings settings;
  settings.environment = std::move(variables);
  settings.environment.push_back("LD_PRELOAD=" + fault_libraries());
  return settings;
}

ProgramSettings with_fault(const std::string& kind, long number, const std::string& count) {
  std::vector<std::string> variables{"ATTNSCOPE_FAULT=" + kind + ":" + std::to_string(number)};
  if (!count.empty()) variables.push_back("ATTNSCOPE_FAULT_COUNT=" + count);
  return with_faults(std::move(variables));
}

long calls_of(const std::vector<std::string>& arguments, const std::string& kind) {
  const TemporaryFolder folder;
  const ProgramResult result = run_attnscope(arguments, with_fault(kind, -1, folder / "count"));
  if (result.exit_code != 0) {
    throw std::runtime_error(kind + ": exit code " + std::to_string(result.exit_code) + "\n" +
                             result.err);
  }
  return std::stol(read_file(folder / "count"));
}

ProgramResult stop_in_the_midst(std::vector<std::string> arguments, const std::string& out,
                                int signal) {
  const TemporaryFolder folder;
  arguments.insert(arguments.end(), {"-o", folder / std::filesystem::path(out).filename()});
  const long reads = calls_of(arguments, "stop-read");
  arguments.back() = out;
  ProgramSettings settings = with_fault("stop-read", reads / 2);
  settings.environment.push_back("ATTNSCOPE_FAULT_SIGNAL=" + std::to_string(signal));
  return run_attnscope(arguments, settings);
}

}  // namespace attnscope::test
