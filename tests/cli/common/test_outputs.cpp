#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "tests/cli/common/fault_settings.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program.h"
#include "tests/support/synthetic.h"

using namespace attnscope::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

size_t files_in(const std::filesystem::path& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

/// The commands that write a file, with everything but its name.
const std::vector<std::vector<std::string>> kWriters{
    {"export", "--no-sync", "--heads", "0", "--rows", "0:10", "--quiet"},
    {"query", "--index", "5", "--heads", "0", "--quiet"}};

ProgramResult write_to(std::vector<std::string> arguments, const std::string& capture,
                       const std::string& out, bool force) {
  arguments.insert(arguments.begin() + 1, capture);
  arguments.insert(arguments.end(), {"-o", out});
  if (force) arguments.emplace_back("--force");
  return run_attnscope(arguments);
}

}  // namespace

TEST_CASE("only a regular file is ever replaced") {
  for (const auto& writer : kWriters) {
    const TemporaryFolder folder;
    const std::string pipe = folder / "pipe.h5";
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    const std::string target = folder / "target";
    std::ofstream(target) << "precious";
    const std::string link = folder / "link.h5";
    REQUIRE(symlink(target.c_str(), link.c_str()) == 0);
    REQUIRE(symlink((folder / "nothing").c_str(), (folder / "dangling.h5").c_str()) == 0);
    REQUIRE(mkdir((folder / "folder.h5").c_str(), 0700) == 0);
    REQUIRE(mkfifo((folder / "out.h5.part").c_str(), 0600) == 0);
    for (const std::string name : {"pipe.h5", "link.h5", "dangling.h5", "folder.h5", "out.h5"}) {
      for (const bool force : {false, true}) {
        INFO(writer.front() << " " << name << " force " << force);
        const auto result = write_to(writer, sample("moving-shapes"), folder / name, force);
        INFO(result.err);
        CHECK(result.exit_code == 1);
        CHECK(files_in(folder.path()) == 6);
      }
    }
    struct stat info {};
    CHECK((lstat(pipe.c_str(), &info) == 0 && S_ISFIFO(info.st_mode)));
    CHECK((lstat(link.c_str(), &info) == 0 && S_ISLNK(info.st_mode)));
    CHECK(read_file(target) == "precious");
  }
}

TEST_CASE("an input is never replaced, by whatever name") {
  for (const auto& writer : kWriters) {
    const TemporaryFolder folder;
    const std::string capture = folder / "head.h5.part";
    write_synthetic_head(capture, 50, 8);
    const std::string before = read_file(capture);
    REQUIRE(link(capture.c_str(), (folder / "hard.h5").c_str()) == 0);
    for (const std::string name : {"head.h5.part", "hard.h5", "head.h5"}) {
      INFO(writer.front() << " " << name);
      const auto result = write_to(writer, capture, folder / name, true);
      CHECK(result.exit_code != 0);
      CHECK(read_file(capture) == before);
      CHECK(files_in(folder.path()) == 2);
    }
  }
}

TEST_CASE("an input that has the name of what runs leave is never removed") {
  for (const auto& writer : kWriters) {
    for (const std::string suffix :
         {".part", ".part.new", ".journal", ".journal.tmp", ".journal.3", ".sums.7", ".lock"}) {
      const TemporaryFolder folder;
      const std::string capture = folder / ("out.h5" + suffix);
      write_synthetic_head(capture, 50, 8);
      const std::string before = read_file(capture);
      for (const bool force : {false, true}) {
        INFO(writer.front() << " " << suffix << " force " << force);
        auto arguments = writer;
        arguments.emplace_back("--grid=5x2x5");  // which a volume needs
        const auto result = write_to(arguments, capture, folder / "out.h5", force);
        INFO(result.err);
        CHECK(result.exit_code == 1);
        CHECK(contains(result.err, "is an input of this run, and would be destroyed"));
        CHECK(read_file(capture) == before);
        CHECK(files_in(folder.path()) == 1);
      }
    }
  }
}

TEST_CASE("somebody else's file that has the name of what runs leave goes with --force alone") {
  for (const std::string suffix :
       {".part.new", ".journal", ".journal.tmp", ".journal.2", ".sums.7", ".sums.7.tmp"}) {
    const TemporaryFolder folder;
    const std::string out = folder / "out.h5";
    std::ofstream(out + suffix) << "mine";
    INFO(suffix);
    const auto refused = write_to(kWriters[0], sample("moving-shapes"), out, false);
    INFO(refused.err);
    CHECK(refused.exit_code == 1);
    CHECK(contains(refused.err, out + suffix + ": "));
    CHECK(contains(refused.err, "--force"));
    CHECK(read_file(out + suffix) == "mine");
    {
      const auto resumed = run_attnscope({"export", sample("moving-shapes"), "--heads", "0",
                                          "--rows", "0:10", "--resume", "--quiet", "-o", out});
      CHECK(resumed.exit_code == 1);
      CHECK(read_file(out + suffix) == "mine");
    }
    CHECK(write_to(kWriters[0], sample("moving-shapes"), out, true).exit_code == 0);
    CHECK(files_in(folder.path()) == 1);
  }
}

TEST_CASE("an output without --resume leaves somebody else's journal beside it alone") {
  for (const std::string suffix : {".journal", ".journal.tmp", ".sums.7"}) {
    const TemporaryFolder folder;
    const std::string out = folder / "out.npy";
    std::ofstream(out + suffix) << "mine";
    for (const bool force : {false, true}) {
      INFO(suffix << (force ? " --force" : ""));
      const auto written = write_to(kWriters[1], sample("moving-shapes"), out, force);
      INFO(written.err);
      CHECK(written.exit_code == 0);
      CHECK(read_file(out + suffix) == "mine");
      CHECK(files_in(folder.path()) == 2);
    }
  }
}

TEST_CASE("what a killed query left is replaced on request only") {
  const TemporaryFolder folder;
  const std::string out = folder / "row.csv";
  std::ofstream(out + ".part") << "left";
  const auto refused = write_to(kWriters[1], sample("moving-shapes"), out, false);
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.err, "--force"));
  CHECK(read_file(out + ".part") == "left");
  CHECK(write_to(kWriters[1], sample("moving-shapes"), out, true).exit_code == 0);
  CHECK(files_in(folder.path()) == 1);
  CHECK(write_to(kWriters[1], sample("moving-shapes"), out, false).exit_code == 1);
}

TEST_CASE("a closed standard error costs nothing, a full standard output is a failure") {
  const TemporaryFolder folder;
  ProgramSettings silent;
  silent.close_stderr = true;
  const auto written = run_attnscope(
      {"export", sample("moving-shapes"), "-o", folder / "out.h5", "--layers", "0", "--no-sync"},
      silent);
  CHECK(written.exit_code == 0);
  CHECK(std::filesystem::exists(folder / "out.h5"));
  CHECK(run_attnscope({"info", folder / "missing"}, silent).exit_code == 1);
  ProgramSettings full;
  full.stdout_path = "/dev/full";
  const auto lost = run_attnscope({"info", sample("moving-shapes"), "--json"}, full);
  INFO(lost.err);
  CHECK(lost.exit_code == 1);
  CHECK(contains(lost.err, "standard output"));
}

TEST_CASE("a capture may have more calls than a process may usually open files") {
  const TemporaryFolder folder;
  for (int i = 0; i < 100; ++i) {
    CallFile call;
    call.pair({1, 1, 4, 8}, {1, 1, 4, 8}).fact("layer", std::to_string(i));
    call.write(folder.path() / ("call" + std::to_string(i) + ".safetensors"));
  }
  ProgramSettings few;
  few.soft_files = 64;
  const auto result = run_attnscope({"info", folder.path().string()}, few);
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(contains(result.out, "0-99"));
}

TEST_CASE("file names that are no UTF-8 do not break JSON") {
  const TemporaryFolder folder;
  const std::string path = folder / "odd\xff.safetensors";
  write_synthetic_head(path, 50, 8);
  const std::vector<std::vector<std::string>> cases{
      {"info", path, "--json"},
      {"query", path, "--index", "1", "--json", "--quiet"},
      {"export", path, "--json", "--quiet", "-o", folder / "o\xfe.h5"}};
  for (const auto& arguments : cases) {
    const auto result = run_attnscope(arguments);
    INFO(arguments.front() << " " << result.err);
    CHECK(result.exit_code == 0);
    CHECK_FALSE(result.out.empty());
    CHECK(result.out.find('\xff') == std::string::npos);
  }
  CHECK(std::filesystem::exists(folder / "o\xfe.h5"));
}

TEST_CASE("an interrupt, a termination and a hang-up stop a run alike") {
  const TemporaryFolder folder;
  write_synthetic_head(folder / "head.safetensors", 800, 16);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    INFO("signal " << signal);
    const std::string out = folder / (std::to_string(signal) + ".h5");
    const auto result = stop_in_the_midst(
        {"export", folder / "head.safetensors", "--quiet", "--no-sync", "--backend", "reference"},
        out, signal);
    INFO(result.err);
    CHECK(result.exit_code == 4);
    CHECK_FALSE(std::filesystem::exists(out));
  }
}

TEST_CASE("each batch item's row names its own words") {
  const TemporaryFolder folder;
  CallFile call;
  call.pair({2, 1, 26, 8}, {2, 1, 26, 8})
      .fact("grid", "2x3x4")
      .fact("text", "2@start")
      .fact("branches", R"(["uncond","cond"])")
      .fact("tokens", R"([["","nothing"],["red","dog"]])");
  const std::string path = folder / "call.safetensors";
  call.write(path);
  const auto query = [&](const std::string& where, std::initializer_list<std::string> more) {
    std::vector<std::string> arguments{"query", path, "--query", where, "--quiet"};
    arguments.insert(arguments.end(), more);
    return run_attnscope(arguments);
  };
  const auto json = query("0,0,0", {"--json", "--top", "26"});
  const size_t cond = json.out.find("\"cond\"");
  REQUIRE(cond != std::string::npos);
  CHECK(contains(json.out.substr(0, cond), "text 1 nothing"));
  CHECK_FALSE(contains(json.out.substr(0, cond), "text 1 dog"));
  CHECK(contains(json.out.substr(cond), "text 1 dog"));
  REQUIRE(query("0,0,0", {"-o", folder / "rows.csv"}).exit_code == 0);
  const std::string table = read_file(folder / "rows.csv");
  CHECK(contains(table, "uncond,joint,0,0,text,1,,,,nothing,"));
  CHECK(contains(table, ",cond,joint,1,0,text,1,,,,dog,"));
  REQUIRE(query("0,0,0", {"-o", folder / "rows.h5"}).exit_code == 0);
  CHECK(read_dataset(folder / "rows.h5", "/volume").shape == std::vector<int64_t>{2, 2, 3, 4});
  // Several rows have no LSE of their own.
  CHECK(contains(query("0,0:2,0", {"--json"}).out, "\"lse\": null"));
  CHECK_FALSE(contains(json.out, "\"lse\": null"));
}

TEST_CASE("a softmax domain that the keys do not have is refused") {
  const TemporaryFolder folder;
  const std::string head = folder / "head.safetensors";
  write_synthetic_head(head, 50, 8);
  const auto text = run_attnscope({"query", head, "--index", "5", "--domain", "text"});
  CHECK(text.exit_code == 2);
  CHECK(contains(text.err, "no text keys"));
  CHECK(run_attnscope({"query", head, "--index", "5", "--domain", "frame"}).exit_code == 2);
  const std::string cross = folder / "cross.safetensors";
  CallFile call;
  call.pair({1, 1, 24, 8}, {1, 1, 7, 8}).fact("grid", "2x3x4").write(cross);
  const auto video = run_attnscope({"query", cross, "--query", "0,0,0", "--domain", "video"});
  CHECK(video.exit_code == 2);
  CHECK(contains(video.err, "all text"));
  const auto written =
      run_attnscope({"query", cross, "--query", "0,0,0", "-o", folder / "cross.h5", "--quiet"});
  INFO(written.err);
  CHECK(written.exit_code == 0);
  CHECK(read_dataset(folder / "cross.h5", "/text").shape == std::vector<int64_t>{1, 7});
  const auto picture =
      run_attnscope({"query", cross, "--query", "0,0,0", "-o", folder / "cross.png", "--quiet"});
  CHECK(picture.exit_code == 2);
  CHECK(contains(picture.err, "write a .csv or .h5"));
}
