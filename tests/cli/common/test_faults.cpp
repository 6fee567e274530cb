#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/cli/common/fault_settings.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/project_paths.h"
#include "tests/support/skip.h"
#include "tests/support/synthetic.h"

using namespace attnscope::test;

namespace {

std::vector<std::string> export_to(const std::string& capture, const std::string& out) {
  return {"export", capture, "-o", out, "--quiet", "--threads", "2"};
}

std::vector<std::string> resume_to(const std::string& capture, const std::string& out) {
  auto arguments = export_to(capture, out);
  arguments.emplace_back("--resume");
  return arguments;
}

}  // namespace

TEST_CASE("the same holds for exports in shards") {
  if (sanitized()) {
    skip_test("a sanitizer has its own allocator");
    return;
  }
  const TemporaryFolder folder;
  const std::string capture = folder / "head.safetensors";
  write_synthetic_head(capture, 700, 16);
  const auto shard_bytes = [](const std::string& out) {
    return read_file(std::filesystem::directory_iterator(out + ".d")->path());
  };
  const auto arguments = [&](const std::string& out, bool resume) {
    auto list = resume ? resume_to(capture, out) : export_to(capture, out);
    list.insert(list.end(), {"--compress", "gzip"});
    return list;
  };
  REQUIRE(run_attnscope(arguments(folder / "whole.h5", false)).exit_code == 0);
  const std::string bytes = shard_bytes(folder / "whole.h5");
  for (const std::string kind : {"pwrite", "fsync", "fallocate", "rename", "new"}) {
    const std::string count = folder / "count";
    REQUIRE(run_attnscope(arguments(folder / (kind + ".h5"), false), with_fault(kind, -1, count))
                .exit_code == 0);
    const long calls = std::atol(read_file(count).c_str());
    REQUIRE(calls > 0);
    for (long n = 1; n <= calls; n += std::max(1L, calls / 25)) {
      INFO(kind << " " << n << " of " << calls);
      const std::string out = folder / "out.h5";
      const auto broken = run_attnscope(arguments(out, false), with_fault(kind, n));
      INFO(broken.err);
      REQUIRE((broken.exit_code == 1 || (kind == "new" && broken.exit_code == 0)));
      const auto resumed = run_attnscope(arguments(out, true));
      INFO(resumed.err);
      REQUIRE(resumed.exit_code == 0);
      REQUIRE(shard_bytes(out) == bytes);
      REQUIRE(run_attnscope({"verify", out, "--quiet"}).exit_code == 0);
      std::filesystem::remove(out);
      std::filesystem::remove_all(out + ".d");
    }
  }
}

TEST_CASE("every failing write, sync, rename and allocation is an error that can be resumed") {
  if (sanitized()) {
    skip_test("a sanitizer has its own allocator");
    return;
  }
  const TemporaryFolder folder;
  const std::string capture = folder / "head.safetensors";
  write_synthetic_head(capture, 1500, 16);
  REQUIRE(run_attnscope(export_to(capture, folder / "whole.h5")).exit_code == 0);
  const std::string bytes = read_file(folder / "whole.h5");
  for (const std::string kind : {"pwrite", "fsync", "fdatasync", "fallocate", "rename", "new"}) {
    const std::string count = folder / "count";
    const auto counted =
        run_attnscope(export_to(capture, folder / (kind + ".h5")), with_fault(kind, -1, count));
    INFO(kind << ": " << counted.err);
    REQUIRE(counted.exit_code == 0);
    const long calls = std::atol(read_file(count).c_str());
    REQUIRE(calls > 0);
    const long step = std::max(1L, calls / 60);
    for (long n = 1; n <= calls; n += n < 5 ? 1 : step) {
      INFO(kind << " " << n << " of " << calls);
      const std::string out = folder / "out.h5";
      const auto broken = run_attnscope(export_to(capture, out), with_fault(kind, n));
      INFO(broken.err);
      // The folder's sync comes after the file has its name: complete, and said to be so.
      REQUIRE((broken.exit_code == 1 || (kind == "new" && broken.exit_code == 0)));
      if (broken.exit_code == 1) REQUIRE(broken.err.rfind("attnscope: ", 0) == 0);
      const auto resumed = run_attnscope(resume_to(capture, out));
      INFO(resumed.err);
      REQUIRE(resumed.exit_code == 0);
      REQUIRE(read_file(out) == bytes);
      REQUIRE_FALSE(std::filesystem::exists(out + ".part"));
      std::filesystem::remove(out);
    }
  }
}

TEST_CASE("a file system without locks and reservations is used, and told of") {
  if (sanitized()) {
    skip_test("a sanitizer must be loaded first");
    return;
  }
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  ProgramSettings poor;
  poor.environment = {"LD_PRELOAD=" + fault_library(), "ATTNSCOPE_FAULT=unsupported"};
  const std::vector<std::string> arguments{"export", sample("moving-shapes"), "-o", out, "--layers",
                                           "0"};
  const auto written = run_attnscope(arguments, poor);
  INFO(written.err);
  REQUIRE(written.exit_code == 0);
  CHECK(written.err.find("has no locks") != std::string::npos);
  CHECK(written.err.find("cannot reserve space") != std::string::npos);
  CHECK(run_attnscope({"verify", out, "--quiet"}).exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(out + ".lock.owner"));
  std::filesystem::remove(out);
  // A process that lives, one that is gone, and one of another host.
  const auto owned_by = [&](const std::string& owner) {
    std::ofstream(out + ".lock.owner") << owner;
    return run_attnscope(arguments, poor);
  };
  char host[256] = "";
  REQUIRE(gethostname(host, sizeof host - 1) == 0);
  const auto alive = owned_by(std::string(host) + " " + std::to_string(getpid()));
  CHECK(alive.exit_code == 1);
  CHECK(alive.err.find("another run") != std::string::npos);
  CHECK(owned_by("elsewhere.example 17").exit_code == 1);
  CHECK(owned_by(std::string(host) + " 2147483646").exit_code == 0);
}

TEST_CASE("kills and interrupts of the program leave what can be resumed") {
  const TemporaryFolder folder;
  const std::string capture = folder / "head.safetensors";
  const int64_t tokens = sanitized() ? 3000 : 12000;
  write_synthetic_head(capture, tokens, 32);
  REQUIRE(run_attnscope(export_to(capture, folder / "whole.h5")).exit_code == 0);
  const std::string out = folder / "out.h5";
  int stopped = 0;
  for (int i = 0; i < 12; ++i) {
    ProgramSettings settings;
    settings.signal = i % 3 == 0 ? SIGINT : SIGKILL;
    settings.signal_after_ms = 40 + 70 * (i % 5);
    const auto result = run_attnscope(resume_to(capture, out), settings);
    INFO("run " << i << " exit " << result.exit_code << ": " << result.err);
    if (result.exit_code == 0) {
      REQUIRE(read_file(out) == read_file(folder / "whole.h5"));
      std::filesystem::remove(out);
      continue;
    }
    ++stopped;
    // A signal may come before the program listens.
    REQUIRE((result.exit_code == 4 || result.exit_code == 128 + settings.signal));
    if (!std::filesystem::exists(out + ".part")) continue;
    const auto info = run_attnscope({"info", out + ".part"});
    INFO(info.err);
    REQUIRE(info.exit_code == 0);
    REQUIRE(info.out.find("incomplete: ") != std::string::npos);
    const auto verified = run_attnscope({"verify", out + ".part", "--quiet"});
    REQUIRE(verified.exit_code == 3);
    REQUIRE(verified.out.find("bad") == std::string::npos);
  }
  CHECK(stopped > 2);
  REQUIRE(run_attnscope(resume_to(capture, out)).exit_code == 0);
  CHECK(read_file(out) == read_file(folder / "whole.h5"));
  CHECK(run_attnscope({"verify", out, "--quiet"}).exit_code == 0);
}
