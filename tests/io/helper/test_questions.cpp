#include "tests/io/helper/test_questions.h"

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "core/base/error.h"
#include "io/files/json_types.h"

namespace attnscope::test {
namespace {

bool spoilt = false;

[[noreturn]] void compute() {
  volatile uint64_t count = 0;
  while (true) count = count + 1;
}

std::string status_line(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return line.substr(line.find_last_of(" \t") + 1);
  }
  return "";
}

Json state(const std::string&, const Json&) {
  Json files = Json::array();
  for (int number = 0; number < 1024; ++number) {
    std::error_code closed;
    const auto file =
        std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(number), closed);
    if (!closed) files.push_back(file.string());
  }
  return {{"files", files},
          {"blocked", status_line("SigBlk:")},
          {"ignored", status_line("SigIgn:")},
          {"group", getpgrp()}};
}

Json raise_signal(const std::string&, const Json& number) {
  // Sanitizers catch them otherwise.
  std::signal(number.get<int>(), SIG_DFL);
  raise(number.get<int>());
  return nullptr;
}

Json garbage(const std::string&, const Json&) {
  const std::string bytes(16, '\xff');
  if (send(0, bytes.data(), bytes.size(), 0) < 0) _exit(1);
  while (true) pause();
}

Json write_and_compute(const std::string&, const Json& name) {
  if (name.is_string()) {
    const auto file = name.get<std::string>();
    std::ofstream(file + ".tmp") << getpid();
    std::filesystem::rename(file + ".tmp", file);
  }
  compute();
}

Json nap(const std::string&, const Json& arguments) {
  for (int i = 0; i < arguments["naps"].get<int>(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return "slept";
}

Json throw_error(const std::string& file, const Json& arguments) {
  const int code = arguments["code"].get<int>();
  if (code < 0) throw std::length_error("basic_string::_M_create");
  throw Error(static_cast<ErrorCode>(code), file + ": here: is odd");
}

Json fragile(const std::string& file, const Json& how) {
  if (!spoilt) return "well";
  if (how == "crash") std::abort();
  if (how == "throw") throw file_error(file, "", "is spoilt");
  compute();
}

}  // namespace

const HelperQuestion kEcho{"echo", [](const std::string&, const Json& a) { return a; }};
const HelperQuestion kProcess{"process",
                              [](const std::string&, const Json&) { return Json(getpid()); }};
const HelperQuestion kState{"state", state};
const HelperQuestion kFileSize{"file size", [](const std::string& file, const Json&) {
                                 return Json(std::filesystem::file_size(file));
                               }};
const HelperQuestion kRaise{"raise", raise_signal};
const HelperQuestion kLeave{"leave", [](const std::string&, const Json&) -> Json { _exit(3); }};
const HelperQuestion kGarbage{"garbage", garbage};
const HelperQuestion kCompute{"compute", write_and_compute};
const HelperQuestion kNap{"nap", nap};
const HelperQuestion kThrow{"throw", throw_error};
const HelperQuestion kTakeBytes{"take bytes", [](const std::string&, const Json& bytes) {
                                  return Json(std::string(bytes.get<size_t>(), 'x').size());
                                }};
const HelperQuestion kSpoil{"spoil", [](const std::string&, const Json&) {
                              spoilt = true;
                              return Json();
                            }};
const HelperQuestion kFragile{"fragile", fragile};

std::span<const HelperQuestion* const> test_questions() {
  static constexpr const HelperQuestion* kQuestions[] = {
      &kEcho,    &kProcess, &kState, &kFileSize,  &kRaise, &kLeave,  &kGarbage,
      &kCompute, &kNap,     &kThrow, &kTakeBytes, &kSpoil, &kFragile};
  return kQuestions;
}

}  // namespace attnscope::test
