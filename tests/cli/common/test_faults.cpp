#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <string>

#include "tests/cli/common/fault_settings.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
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

/// `part` holds the tiles that it says, and says that it is complete only where it equals `whole`.
void expect_sound_part(const std::string& part, const std::string& whole) {
  const auto info = run_attnscope({"info", part});
  INFO(info.err);
  REQUIRE(info.exit_code == 0);
  const bool is_whole = info.out.find("incomplete: ") == std::string::npos;
  if (is_whole) REQUIRE(read_file(part) == whole);
  const auto verified = run_attnscope({"verify", part, "--quiet"});
  INFO(verified.out << verified.err);
  REQUIRE(verified.exit_code == (is_whole ? 0 : 3));
  REQUIRE(verified.out.find("bad") == std::string::npos);
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
  const std::string out = folder / "out.h5";
  const auto remove_export = [&] {
    std::filesystem::remove(out);
    std::filesystem::remove_all(out + ".d");
  };
  REQUIRE(run_attnscope(arguments(out, false)).exit_code == 0);
  const std::string bytes = shard_bytes(out);
  const std::string master = read_file(out);
  remove_export();
  for (const std::string kind : {"pwrite", "fsync", "fallocate", "rename", "new"}) {
    const long calls = calls_of(arguments(folder / (kind + ".h5"), false), kind);
    REQUIRE(calls > 0);
    for (long n = 1; n <= calls; n += std::max(1L, calls / 25)) {
      INFO(kind << " " << n << " of " << calls);
      const auto broken = run_attnscope(arguments(out, false), with_fault(kind, n));
      INFO(broken.err);
      REQUIRE((broken.exit_code == 1 || (kind == "new" && broken.exit_code == 0)));
      const auto resumed = run_attnscope(arguments(out, true));
      INFO(resumed.err);
      REQUIRE(resumed.exit_code == 0);
      REQUIRE(shard_bytes(out) == bytes);
      REQUIRE(read_file(out) == master);
      remove_export();
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
    const long calls = calls_of(export_to(capture, folder / (kind + ".h5")), kind);
    REQUIRE(calls > 0);
    const long step = std::max(1L, calls / (kind == "new" ? 30 : 60));
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
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  const ProgramSettings poor = with_faults({"ATTNSCOPE_FAULT=unsupported"});
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

TEST_CASE("a run that is killed or interrupted at any write or step is gone on with") {
  const TemporaryFolder folder;
  const std::string capture = folder / "head.safetensors", out = folder / "out.h5";
  write_synthetic_head(capture, 1500, 16);
  const std::string whole = folder / "whole.h5";
  REQUIRE(run_attnscope(export_to(capture, whole)).exit_code == 0);
  const std::string bytes = read_file(whole);
  for (const std::string kind : {"kill", "kill-write", "stop", "stop-write"}) {
    const int ended = kind.starts_with("kill") ? 128 + SIGKILL : 4;
    const std::string counted = folder / (kind + ".h5");
    const long calls = calls_of(export_to(capture, counted), kind);
    REQUIRE(calls > 5);
    int stopped = 0;
    for (long n = 1; n <= calls; n += std::max(1L, calls / (sanitized() ? 3 : 10))) {
      INFO(kind << " " << n << " of " << calls);
      // The second run, which resumes the first one's part, is ended midway, too.
      for (const long at : {n, calls / 4}) {
        const auto result = run_attnscope(resume_to(capture, out), with_fault(kind, at));
        INFO(result.err);
        if (result.exit_code == 0) break;
        ++stopped;
        REQUIRE(result.exit_code == ended);
        if (std::filesystem::exists(out)) {
          // Killed once it had its name.
          REQUIRE(ended != 4);
          REQUIRE(read_file(out) == bytes);
          break;
        }
        if (std::filesystem::exists(out + ".journal")) expect_sound_part(out + ".part", bytes);
      }
      const auto resumed = run_attnscope(resume_to(capture, out));
      INFO(resumed.err);
      REQUIRE(resumed.exit_code == 0);
      REQUIRE(read_file(out) == bytes);
      REQUIRE(run_attnscope({"verify", out, "--quiet"}).exit_code == 0);
      std::filesystem::remove(out);
    }
    CHECK(stopped > (sanitized() ? 3 : 10));
  }
}
