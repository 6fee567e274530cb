#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/files/child_task.h"
#include "tests/support/catch.h"
#include "tests/support/sanitized.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

std::string error_of(ErrorCode code, const std::function<std::string()>& work,
                     const ChildLimits& limits = {}) {
  return thrown_text(code, [&] { run_in_child("a.h5", work, limits); });
}

}  // namespace

TEST_CASE("a child's result comes back whole, and its errors keep their kind") {
  CHECK(run_in_child("a.h5", [] { return std::string(); }).empty());
  const std::string large(3 << 20, 'x');
  CHECK(run_in_child("a.h5", [&] { return large; }) == large);
  CHECK(error_of(ErrorCode::usage, []() -> std::string { throw usage_error("what was asked"); }) ==
        "what was asked");
  CHECK(error_of(ErrorCode::file, []() -> std::string {
          throw file_error("a.h5", "here", "is odd");
        }) == "a.h5: here: is odd");
}

TEST_CASE("a child that hangs, crashes or takes memory is an error of the file") {
  const auto begin = std::chrono::steady_clock::now();
  const std::string hang = error_of(ErrorCode::file,
                                    []() -> std::string {
                                      while (true) pause();
                                    },
                                    {.time = std::chrono::seconds(1)});
  CHECK(hang == "a.h5: reading it took more than 1 s: the file is damaged");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
  for (const int number : {SIGSEGV, SIGABRT, SIGKILL}) {
    INFO("signal " << number);
    CHECK(error_of(ErrorCode::file, [&]() -> std::string {
            signal(number, SIG_DFL);
            raise(number);
            return "";
          }) == "a.h5: the library that reads it broke down: the file is damaged");
  }
  if (sanitized()) return;  // no limit of address space there
  const std::string large =
      error_of(ErrorCode::resource, [] { return std::string(size_t{1} << 30, 'x'); },
               {.memory_bytes = 64 << 20});
  CHECK(large.find("bad_alloc") != std::string::npos);
}
