#include "tests/cli/serve/served_program.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <stdexcept>

#include "tests/support/project_paths.h"
#include "tests/support/waiting.h"

namespace attnscope::test {
namespace {

[[noreturn]] void become_program(std::vector<std::string> words, const ProgramSettings& settings,
                                 const std::string& out, const std::string& err) {
  words.insert(words.begin(), {program_path() + "_with_page", "serve"});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const auto redirect = [](const char* path, int flags, int to) {
    const int fd = ::open(path, flags, 0600);
    if (fd < 0 || ::dup2(fd, to) < 0) ::_exit(126);
  };
  redirect("/dev/null", O_RDONLY, 0);
  redirect(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 1);
  redirect(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 2);
  if (settings.soft_files != 0) {
    rlimit limits{};
    ::getrlimit(RLIMIT_NOFILE, &limits);
    limits.rlim_cur = static_cast<rlim_t>(settings.soft_files);
    ::setrlimit(RLIMIT_NOFILE, &limits);
  }
  for (const std::string& variable : settings.environment) {
    const size_t equals = variable.find('=');
    ::setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

}  // namespace

ServedProgram::ServedProgram(const std::vector<std::string>& words,
                             const ProgramSettings& settings) {
  child_ = ::fork();
  if (child_ < 0) throw std::runtime_error("fork failed");
  if (child_ == 0) become_program(words, settings, folder_ / "out", folder_ / "err");
}

ServedProgram::~ServedProgram() {
  if (child_ < 0) return;
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
}

bool ServedProgram::wait_for_address() {
  static const std::regex lines(
      "http://([^/\n]+):([0-9]+)(/[^#\n]*)#token=([0-9a-f]{32})\n(ssh -N -L [^\n]+)\n");
  std::smatch found;
  std::string out;
  becomes([&] {
    out = read_file(folder_ / "out");
    return std::regex_match(out, found, lines) || has_ended(child_);
  });
  if (found.empty()) return false;
  host_ = found[1];
  port_ = std::stoi(found[2]);
  path_ = found[3];
  token_ = found[4];
  ssh_line_ = found[5];
  return true;
}

std::string ServedProgram::err() const { return read_file(folder_ / "err"); }
void ServedProgram::signal(int number) const { ::kill(child_, number); }

ProgramResult ServedProgram::end() {
  ProgramResult result;
  if (!becomes([&] { return has_ended(child_); })) throw std::runtime_error("it does not end");
  int status = 0;
  rusage usage{};
  ::wait4(child_, &status, 0, &usage);
  child_ = -1;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_file(folder_ / "out");
  result.err = err();
  result.peak_bytes = static_cast<int64_t>(usage.ru_maxrss) * 1024;
  return result;
}

int64_t ServedProgram::peak_bytes() const {
  std::ifstream status("/proc/" + std::to_string(child_) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

}  // namespace attnscope::test
