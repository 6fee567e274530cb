// A capture that is written to, replaced or removed while a command reads it: an error that names
// it, and no result, whatever was read already.
#include <algorithm>
#include <chrono>
#include <filesystem>

#include "tests/cli/common/fault_settings.h"
#include "tests/support/answers.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/skip.h"
#include "tests/support/synthetic.h"

using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

struct Case {
  std::vector<std::string> arguments;
  std::string output;  ///< empty: a table on standard output
};

/// One head of 300 tokens, as it was written long ago: a change must not share its time.
void write_old_head(const std::string& path) {
  fs::remove(path);
  write_synthetic_head(path, 300, 16);
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
}

/// The last byte of `capture` becomes another before the n-th read.
ProgramSettings with_change(long n, const std::string& capture, const std::string& count = "") {
  ProgramSettings settings = with_fault("read", n, count);
  settings.environment.push_back("ATTNSCOPE_FAULT_CHANGE=" + capture);
  return settings;
}

void remove_outputs(const std::string& output) {
  for (const char* end : {"", ".part", ".journal", ".lock", ".d", ".d.part"}) {
    fs::remove_all(output + end);
  }
}

}  // namespace

TEST_CASE("a capture that changes while it is read gives no result") {
  if (sanitized()) {
    skip_test("a sanitizer has its own reads");
    return;
  }
  const TemporaryFolder folder;
  const std::string capture = folder / "head.safetensors";
  const std::string grid = "--grid=5x6x10";
  const std::vector<Case> cases{
      {{"export", capture, "-o", folder / "w.h5"}, folder / "w.h5"},
      {{"export", capture, "--dtype=u8", "--compress=gzip", "-o", folder / "z.h5"},
       folder / "z.h5"},
      {{"export", capture, "--product=pooled", "--block=64", "-o", folder / "p.h5"},
       folder / "p.h5"},
      {{"stats", capture, "-o", folder / "s.json"}, folder / "s.json"},
      {{"stats", capture}, ""},
      {{"stats", capture, "--json"}, ""},
      {{"query", capture, "--index=7"}, ""},
      {{"query", capture, "--index=7", "--reverse", "--cache=none"}, ""},
      {{"query", capture, grid, "--index=7", "-o", folder / "q.npy"}, folder / "q.npy"},
      {{"mask", capture, "--mask=causal"}, ""},
      {{"mask", capture, "--mask=causal", "--save", folder / "m.npy"}, folder / "m.npy"},
      {{"rollout", capture, "--index=3"}, ""},
      {{"render", capture, "--picture=matrix", "-o", folder / "r.png"}, folder / "r.png"},
      {{"render", capture, grid, "--picture=filmstrip", "--index=3", "-o", folder / "f.png"},
       folder / "f.png"},
      {{"verify", capture}, ""},
      {{"info", capture, "--scan"}, ""},
      {{"convert", capture, "-o", folder / "copy"}, folder / "copy"}};
  for (const Case& c : cases) {
    INFO(c.arguments.front() << " " << c.output);
    write_old_head(capture);
    const std::string count = folder / "count";
    const auto whole = run_attnscope(c.arguments, with_change(-1, capture, count));
    INFO(whole.err);
    REQUIRE(whole.exit_code == 0);
    remove_outputs(c.output.empty() ? std::string(folder / "none") : c.output);
    const long reads = std::stol(read_file(count));
    REQUIRE(reads > 2);
    // `info` looks at how a file begins before it opens it.
    const long first = c.arguments.front() == "info" ? 3 : 2;
    for (const long n : {first, reads / 2, reads}) {
      INFO("before read " << n << " of " << reads);
      write_old_head(capture);
      const auto mixed = run_attnscope(c.arguments, with_change(n, capture));
      INFO(mixed.err);
      CHECK(mixed.exit_code == 1);
      CHECK(mixed.err.find(capture + ": was changed while it was read: it was written to") !=
            std::string::npos);
      CHECK((mixed.out.empty() || is_error_answer(mixed.out)));
      if (!c.output.empty()) {
        CHECK_FALSE(fs::exists(c.output));
        remove_outputs(c.output);
      }
    }
  }
}

TEST_CASE("row sums of a capture that changes while it is read are not kept") {
  if (sanitized()) {
    skip_test("a sanitizer has its own reads");
    return;
  }
  const TemporaryFolder folder;
  const std::string capture = folder / "head.safetensors";
  const std::string count = folder / "count";
  const fs::path cache = folder.path() / "cache";
  const std::vector<std::string> arguments{"query", capture, "--index=7", "--reverse",
                                           "--cache=" + cache.string()};
  const auto kept = [&] {
    return fs::exists(cache) ? std::distance(fs::directory_iterator(cache), {}) : 0;
  };
  write_old_head(capture);
  REQUIRE(run_attnscope(arguments, with_change(-1, capture, count)).exit_code == 0);
  REQUIRE(kept() == 1);
  const long reads = std::stol(read_file(count));
  for (long n = 2; n <= reads; ++n) {
    fs::remove_all(cache);
    write_old_head(capture);
    const auto mixed = run_attnscope(arguments, with_change(n, capture));
    INFO("before read " << n << " of " << reads << ": " << mixed.err);
    CHECK(mixed.exit_code == 1);
    // Row sums that were kept before the change are those of the old file, and are valid for it.
    if (kept() > 0) {
      write_old_head(capture);
      CHECK(run_attnscope(arguments).err.find("1 from the cache") != std::string::npos);
    }
  }
}

TEST_CASE("an export of a capture that changed is not gone on with as if it had not") {
  if (sanitized()) {
    skip_test("a sanitizer has its own reads");
    return;
  }
  const TemporaryFolder folder;
  const std::string capture = folder / "head.safetensors";
  const std::string count = folder / "count";
  const std::vector<std::string> arguments{"export", capture,         "--memory=8MiB",
                                           "-o",     folder / "w.h5", "--resume"};
  write_old_head(capture);
  REQUIRE(run_attnscope(arguments, with_change(-1, capture, count)).exit_code == 0);
  const std::string undisturbed = read_file(folder / "w.h5");
  const long reads = std::stol(read_file(count));
  fs::remove(folder / "w.h5");
  write_old_head(capture);
  REQUIRE(run_attnscope(arguments, with_change(reads, capture)).exit_code == 1);
  const auto changed = run_attnscope(arguments);
  INFO(changed.err);
  // Nothing of it was committed, or it is known to be of another content.
  if (changed.exit_code == 0) {
    CHECK(read_file(folder / "w.h5") != undisturbed);
  } else {
    CHECK(changed.err.find("hash") != std::string::npos);
  }
  remove_outputs(folder / "w.h5");
  write_old_head(capture);
  const auto again = run_attnscope(arguments);
  INFO(again.err);
  REQUIRE(again.exit_code == 0);
  CHECK(read_file(folder / "w.h5") == undisturbed);
}
