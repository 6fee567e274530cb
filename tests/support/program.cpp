#include "tests/support/program.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/support/project_paths.h"
#include "tests/support/waiting.h"

namespace attnscope::test {
namespace {

[[noreturn]] void run_child(const std::vector<std::string>& arguments,
                            const ProgramSettings& settings, const std::string& out,
                            const std::string& err) {
  std::vector<char*> argv;
  std::string program = program_path();
  argv.push_back(program.data());
  std::vector<std::string> copies = arguments;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const auto redirect = [](const char* path, int flags, int to) {
    const int fd = open(path, flags, 0600);
    if (fd < 0 || dup2(fd, to) < 0) _exit(126);
  };
  redirect("/dev/null", O_RDONLY, 0);
  const bool elsewhere = !settings.stdout_path.empty();
  redirect((elsewhere ? settings.stdout_path : out).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 1);
  redirect(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 2);
  if (settings.close_stderr) close(2);
  if (settings.soft_files != 0) {
    rlimit limits{};
    getrlimit(RLIMIT_NOFILE, &limits);
    limits.rlim_cur = static_cast<rlim_t>(settings.soft_files);
    setrlimit(RLIMIT_NOFILE, &limits);
  }
  if (settings.max_file_bytes != 0) {
    const auto limit = static_cast<rlim_t>(settings.max_file_bytes);
    const rlimit limits{limit, limit};
    setrlimit(RLIMIT_FSIZE, &limits);
  }
  for (const std::string& variable : settings.environment) {
    const size_t equals = variable.find('=');
    setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
  execv(program.c_str(), argv.data());
  _exit(127);
}

/// True once the program's main thread blocks the signal, so that its watcher gets it. Before the
/// work begins it does not, and the signal would end the program.
bool watches(pid_t child, int signal) {
  std::ifstream status("/proc/" + std::to_string(child) + "/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind("SigBlk:", 0) != 0) continue;
    const auto blocked = std::stoull(line.substr(7), nullptr, 16);
    const auto blocks = [&](int number) { return (blocked >> (number - 1) & 1) != 0; };
    // While a thread is being started all signals are blocked for a moment.
    return blocks(signal) && !blocks(SIGUSR1);
  }
  return false;
}

void await_signal_time(pid_t child, const ProgramSettings& settings) {
  const auto ready = [&] {
    return (settings.signal == SIGKILL || watches(child, settings.signal)) &&
           (settings.signal_from.empty() || std::filesystem::exists(settings.signal_from));
  };
  becomes([&] { return ready() || has_ended(child); });
}

}  // namespace

ProgramResult run_attnscope(const std::vector<std::string>& arguments,
                            const ProgramSettings& settings) {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  const std::string err = folder / "err";
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) run_child(arguments, settings, out, err);
  if (settings.signal != 0) {
    await_signal_time(child, settings);
    kill(child, settings.signal);
  }
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child) throw std::runtime_error("wait4 failed");
  ProgramResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_file(out);
  result.err = read_file(err);
  result.peak_bytes = static_cast<int64_t>(usage.ru_maxrss) * 1024;
  return result;
}

std::string sample(const std::string& name) { return project_folder() + "/samples/" + name; }

std::string test_data(const std::string& name) { return project_folder() + "/tests/data/" + name; }

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace attnscope::test
