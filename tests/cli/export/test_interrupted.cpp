// An interrupted run is resumed by the same command alone; every other is refused, says why, and
// changes nothing, until --force gives up the files that it left.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <thread>

#include "tests/cli/common/fault_settings.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"

using namespace attnscope::test;

namespace {

using Arguments = std::vector<std::string>;

/// A command that writes OUT, by a name for messages.
struct Run {
  std::string name;
  Arguments arguments;
  bool in_shards = false;
};

const std::vector<Run> kRuns{
    {"weights", {"export"}},
    {"weights of another type", {"export", "--dtype", "u8"}},
    {"logits", {"export", "--product", "logits"}},
    {"lse", {"export", "--product", "lse"}},
    {"rows", {"export", "--index", "3", "--index", "400", "--index", "900"}},
    {"output", {"export", "--product", "output"}},
    {"topk", {"export", "--topk", "5", "--rows", "0:300"}, true},
    {"threshold", {"export", "--threshold", "0.02", "--rows", "0:300"}, true},
    {"gzip", {"export", "--compress", "gzip", "--rows", "0:300"}, true},
    {"pooled", {"export", "--block", "16", "--pyramid"}},
    {"stats", {"stats"}}};

const Run& run_named(const std::string& name) {
  for (const Run& run : kRuns) {
    if (run.name == name) return run;
  }
  throw std::logic_error(name);
}

Arguments command(const Run& run, const std::string& out, const Arguments& more = {}) {
  Arguments arguments{run.arguments.front(), sample("moving-shapes")};
  arguments.insert(arguments.end(), run.arguments.begin() + 1, run.arguments.end());
  // Two calls of two heads: two shards, and work that is done before what is not.
  arguments.insert(arguments.end(),
                   {"--layers", "0-1", "--heads", "0-1", "--threads", "1", "-o", out});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// Every file below a folder, by its name there. Locks mean nothing.
std::map<std::string, std::string> files_in(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& item : std::filesystem::recursive_directory_iterator(folder)) {
    if (!item.is_regular_file() || item.path().extension() == ".lock") continue;
    files[item.path().lexically_relative(folder).string()] = read_file(item.path());
  }
  return files;
}

std::vector<std::string> names_of(const std::map<std::string, std::string>& files) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : files) names.push_back(name);
  return names;
}

/// The files of the undisturbed run.
std::map<std::string, std::string> whole(const Run& run) {
  const TemporaryFolder folder;
  const auto result = run_attnscope(command(run, folder / "out.h5"));
  INFO(run.name << ": " << result.err);
  REQUIRE(result.exit_code == 0);
  return files_in(folder.path());
}

/// With --force, because a name that must not be taken is not given by rename().
long calls_of(const Run& run, const std::string& kind) {
  const TemporaryFolder folder;
  return attnscope::test::calls_of(command(run, folder / "out.h5", {"--force"}), kind);
}

/// Ends a run by a write that fails when much of it is done, not all.
void interrupt(const Run& run, const std::string& out) {
  // Of stats: the third head of four, after the list's first line and two heads. In one file: a
  // tile, before the journal's records and the mark; in shards: the second one, before the master.
  const long calls = calls_of(run, "pwrite");
  const long write = run.name == "stats" ? 4 : run.in_shards ? calls * 3 / 4 : calls - 3;
  const auto broken = run_attnscope(command(run, out), with_fault("pwrite", write));
  INFO(run.name << ": " << broken.err);
  REQUIRE(broken.exit_code == 1);
  REQUIRE_FALSE(std::filesystem::exists(out));
  REQUIRE(std::filesystem::exists(out + (run.in_shards ? ".d.part" : ".part")));
}

/// A run that must be refused without a trace.
void expect_refused(const Arguments& arguments, const std::filesystem::path& folder,
                    const std::string& reason) {
  const auto before = files_in(folder);
  const auto refused = run_attnscope(arguments);
  std::string line;
  for (const std::string& argument : arguments) line += argument + " ";
  INFO(line << "\n" << refused.err);
  CHECK(refused.exit_code == 1);
  CHECK(refused.err.find("attnscope: " + (folder / "out.h5").string()) != std::string::npos);
  CHECK(refused.err.find(reason) != std::string::npos);
  CHECK(files_in(folder) == before);
}

/// Checks that `resumed` went on with work that was there.
void expect_resumed(const ProgramResult& resumed) {
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  CHECK(resumed.err.find("resuming ") != std::string::npos);
  CHECK(resumed.err.find(": 0 of ") == std::string::npos);
}

pid_t parent_of(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  std::string word;
  while (status >> word && word != "PPid:") {
  }
  pid_t parent = 0;
  status >> parent;
  return parent;
}

bool skipped_here() {
  if (sanitized()) skip_test("hundreds of runs, each a second long under a sanitizer");
  return sanitized();
}

}  // namespace

TEST_CASE("an interrupted run is lost by the resume of no other") {
  if (skipped_here()) return;
  for (const Run& run : kRuns) {
    if (run.name == "pooled") continue;  // leaves nothing
    const TemporaryFolder folder;
    const std::string out = folder / "out.h5";
    interrupt(run, out);
    for (const Run& other : kRuns) {
      if (other.name == run.name) continue;
      INFO(run.name << " interrupted, " << other.name << " asked for");
      const std::string reason = run.name == "stats" ? "belongs to an interrupted run of stats"
                                                     : "belongs to another export: ";
      // Each pair in one of the two ways; tests/io/export/write/test_resume.cpp has both.
      Arguments more{"--resume"};
      if ((&run - &other) % 2 == 0) more.emplace_back("--force");
      expect_refused(command(other, out, more), folder.path(), reason);
      if (other.name != "pooled") continue;
      expect_refused(command(other, out), folder.path(), "--force gives it up");
    }
    expect_refused(command(run, out), folder.path(), "--resume goes on with it");
    expect_refused(
        {"query", sample("moving-shapes"), "--index", "5", "--heads", "0", "-o", out, "--quiet"},
        folder.path(), "is left from an interrupted");
    expect_resumed(run_attnscope(command(run, out, {"--resume"})));
    const auto expected = whole(run);
    CHECK(names_of(files_in(folder.path())) == names_of(expected));
    CHECK(files_in(folder.path()) == expected);
  }
}

TEST_CASE("nothing of an interrupted pooled export is in the way of another") {
  const auto expected = whole(run_named("topk"));
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  std::ofstream(out + ".part.new") << "\x89HDF\r\n\x1a\nwhat a killed run was building";
  REQUIRE(run_attnscope(command(run_named("topk"), out, {"--resume"})).exit_code == 0);
  CHECK(files_in(folder.path()) == expected);
}

TEST_CASE("with --force an interrupted run is given up, all of it") {
  if (skipped_here()) return;
  const Arguments names{"weights", "gzip", "stats", "pooled"};
  for (const std::string name : {"lse", "topk", "stats"}) {
    for (const std::string& other : names) {
      INFO(name << " given up for " << other);
      const TemporaryFolder folder;
      const std::string out = folder / "out.h5";
      interrupt(run_named(name), out);
      const auto forced = run_attnscope(command(run_named(other), out, {"--force"}));
      INFO(forced.err);
      CHECK(forced.exit_code == 0);
      CHECK(files_in(folder.path()) == whole(run_named(other)));
      CHECK_FALSE(std::filesystem::exists(out + ".d.part"));
    }
  }
}

TEST_CASE("a folder that holds an input, or what is no shard, is not replaced by --force") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  std::filesystem::create_directory(out + ".d.part");
  const std::string input = out + ".d.part/head.h5";
  REQUIRE(run_attnscope(command(run_named("weights"), input)).exit_code == 0);
  const auto before = files_in(folder.path());
  const auto refused = run_attnscope({"query", input, "--index", "5", "-o", out, "--force"});
  INFO(refused.err);
  CHECK(refused.exit_code == 1);
  CHECK(refused.err.find(input + ": is an input of this run") != std::string::npos);
  CHECK(files_in(folder.path()) == before);
  std::ofstream(out + ".d.part/notes.txt") << "mine";
  const auto kept = run_attnscope(command(run_named("weights"), out, {"--force"}));
  CHECK(kept.exit_code == 1);
  CHECK(kept.err.find(".d.part: holds ") != std::string::npos);
  CHECK(kept.err.find("which is no shard, and is not removed: move it away first\n") !=
        std::string::npos);
  CHECK(std::filesystem::exists(input));
  CHECK(read_file(out + ".d.part/notes.txt") == "mine");
}

TEST_CASE("shards without the journal that tells whose they are stay") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  std::filesystem::create_directory(out + ".d.part");
  std::ofstream(out + ".d.part/some.h5") << "a shard";
  for (const std::string name : {"weights", "gzip", "pooled", "stats"}) {
    expect_refused(command(run_named(name), out, {"--resume"}), folder.path(), "has no journal");
  }
}

TEST_CASE("a run that ends before its output has its name is gone on with") {
  if (skipped_here()) return;
  for (const std::string name : {"weights", "topk", "gzip", "stats"}) {
    const Run& run = run_named(name);
    const auto expected = whole(run);
    // The last one gives the output its name; those before it, what the output is made of.
    const long renames = calls_of(run, "rename");
    for (long n = std::max(1L, renames - 2); n <= renames; ++n) {
      INFO(name << ": rename " << n << " of " << renames);
      const TemporaryFolder folder;
      const std::string out = folder / "out.h5";
      const auto broken = run_attnscope(command(run, out, {"--force"}), with_fault("rename", n));
      INFO(broken.err);
      REQUIRE(broken.exit_code == 1);
      const bool kept = std::filesystem::exists(out + ".part");
      if (kept) {
        expect_refused(command(run_named("rows"), out, {"--resume"}), folder.path(), "belongs to");
      }
      const auto resumed = run_attnscope(command(run, out, {"--resume"}));
      if (n == renames) expect_resumed(resumed);
      INFO(resumed.err);
      CHECK(resumed.exit_code == 0);
      CHECK(files_in(folder.path()) == expected);
    }
  }
}

TEST_CASE("a signal at any step ends a run in the usual words, or finds it finished") {
  if (skipped_here()) return;
  for (const std::string name : {"gzip", "weights", "threshold", "pooled", "stats"}) {
    const Run& run = run_named(name);
    const auto expected = whole(run);
    const long steps = calls_of(run, "stop");
    REQUIRE(steps > 3);
    bool finished = false;
    for (long n = 1; n <= steps; n += std::max(1L, steps / 12)) {
      INFO(name << ": step " << n << " of " << steps);
      const TemporaryFolder folder;
      const std::string out = folder / "out.h5";
      const auto stopped = run_attnscope(command(run, out), with_fault("stop", n));
      INFO(stopped.err);
      finished = stopped.exit_code == 0;
      REQUIRE(std::filesystem::exists(out) == finished);
      if (finished) {
        CHECK(files_in(folder.path()) == expected);
        continue;
      }
      REQUIRE(stopped.exit_code == 4);
      CHECK(stopped.err.find("attnscope: interrupted: ") != std::string::npos);
      const auto resumed = run_attnscope(command(run, out, {"--resume"}));
      INFO(resumed.err);
      REQUIRE(resumed.exit_code == 0);
      CHECK(files_in(folder.path()) == expected);
    }
    // A signal that comes when all is computed does not cut the run short.
    CHECK(finished);
  }
}

TEST_CASE("a signal that reaches the helper of a run as well is the run's to answer") {
  if (skipped_here()) return;
  const Run& run = run_named("weights");
  const TemporaryFolder folder, elsewhere;
  const std::string out = folder / "out.h5";
  interrupt(run, out);
  // A terminal sends it to all: to the helper that reads the structure of OUT.part, too.
  const std::string begun = elsewhere / "helper";
  ProgramSettings settings = with_faults({"ATTNSCOPE_FAULT_HELPER=" + begun});
  std::atomic<bool> ended = false;
  std::thread terminal([&] {
    while (!std::filesystem::exists(begun) && !ended) std::this_thread::yield();
    if (ended) return;
    const auto helper = static_cast<pid_t>(std::atol(read_file(begun).c_str()));
    kill(helper, SIGINT);
    kill(parent_of(helper), SIGINT);
    std::ofstream(begun + ".go") << "go";
  });
  const auto stopped = run_attnscope(command(run, out, {"--resume"}), settings);
  ended = true;
  terminal.join();
  INFO(stopped.err);
  CHECK(stopped.exit_code == 4);
  CHECK(stopped.err.find("attnscope: interrupted: ") != std::string::npos);
  expect_resumed(run_attnscope(command(run, out, {"--resume"})));
}

TEST_CASE("a run that was killed with a helper beside it is gone on with at once") {
  if (skipped_here()) return;
  // Who the parent leaves behind becomes ours.
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  const Run& run = run_named("weights");
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  interrupt(run, out);
  // Resumed, the structure of OUT.part is read in the helper process. It gets no processor while
  // its parent is killed and the next run comes.
  const TemporaryFolder elsewhere;
  const std::string begun = elsewhere / "begun";
  ProgramSettings settings = with_faults({"ATTNSCOPE_FAULT_HELPER=" + begun});
  settings.signal = SIGKILL;
  settings.signal_from = begun;
  const auto killed = run_attnscope(command(run, out, {"--resume"}), settings);
  INFO(killed.err);
  REQUIRE(killed.exit_code == 128 + SIGKILL);
  REQUIRE(std::filesystem::exists(begun));
  const auto helper = static_cast<pid_t>(std::atol(read_file(begun).c_str()));
  REQUIRE(kill(helper, 0) == 0);
  const auto resumed = run_attnscope(command(run, out, {"--resume"}));
  CHECK(kill(helper, 0) == 0);
  expect_resumed(resumed);
  CHECK(files_in(folder.path()) == whole(run));
  // Given a processor, it sees that nobody waits for it.
  std::ofstream(begun + ".go") << "go";
  int status = 0;
  REQUIRE(waitpid(helper, &status, 0) == helper);
  CHECK(WIFEXITED(status));
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}
