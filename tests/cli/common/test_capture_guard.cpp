// Nothing is written into the capture that is read, whatever command reads it.
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"

using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& item : fs::recursive_directory_iterator(folder)) {
    if (item.is_regular_file()) {
      files[item.path().lexically_relative(folder).string()] = read_file(item.path());
    }
  }
  return files;
}

/// The commands that read a capture and write, with the option that names the output and its
/// ending.
struct Writer {
  Arguments words;
  std::string option, ending;
};
const std::vector<Writer> kWriters{
    {{"export", "--rows", "0:10"}, "-o", ".h5"},
    {{"export", "--block", "16"}, "-o", ".h5"},
    {{"export", "--compress", "gzip", "--rows", "0:10"}, "-o", ".h5"},
    {{"stats", "--sample", "8"}, "-o", ".json"},
    {{"stats", "--sample", "8"}, "-o", ".csv"},
    {{"mask", "--mask", "causal"}, "-o", ".json"},
    {{"mask", "--mask", "causal", "--heads", "0"}, "--save", ".npy"},
    {{"query", "--query", "0,1,1"}, "-o", ".npy"},
    {{"rollout", "--query", "0,1,1"}, "-o", ".npy"},
    {{"render", "--picture", "mosaic"}, "-o", ".png"},
    {{"plot", "--what", "entropy"}, "-o", ".png"},
    {{"convert"}, "-o", ".safetensors"},
    {{"convert"}, "-o", ""}};

ProgramResult run(const Writer& writer, const std::string& capture, const std::string& out,
                  const Arguments& more = {}) {
  Arguments arguments = writer.words;
  arguments.insert(arguments.begin() + 1, capture);
  arguments.insert(arguments.end(), {writer.option, out, "--quiet"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_attnscope(arguments);
}

/// A folder of one call, without a capture.json.
void write_call(const fs::path& folder) {
  fs::create_directories(folder);
  CallFile()
      .pair({1, 2, 26, 4}, {1, 2, 26, 4})
      .fact("grid", "2x3x4")
      .fact("text", "2@start")
      .write(folder / "call.safetensors");
}

}  // namespace

TEST_CASE("no command writes into the capture that it reads") {
  const TemporaryFolder folder;
  const std::string dump = folder / "dump";
  write_call(dump);
  fs::create_directory(dump + "/sub");
  fs::create_directory_symlink(dump, folder / "link");
  const auto before = files_in(folder.path());
  for (const Writer& writer : kWriters) {
    for (const std::string place : {"dump/", "dump/sub/", "link/", "dump/../dump/sub/"}) {
      for (const Arguments& more : {Arguments{}, Arguments{"--force"}}) {
        const std::string out = folder / (place + "out" + writer.ending);
        const auto refused = run(writer, dump, out, more);
        INFO(writer.words.front() << " to " << place << ": " << refused.err);
        CHECK(refused.exit_code == 1);
        CHECK(contains(refused.err, out + ": would stand in " + dump + ", which is read"));
        CHECK(files_in(folder.path()) == before);
      }
    }
  }
}

TEST_CASE("beside a capture that is one file, and beside a folder, there is room") {
  const TemporaryFolder folder;
  const std::string dump = folder / "dump";
  write_call(dump);
  for (const Writer& writer : kWriters) {
    const std::string file = dump + "/call.safetensors";
    const auto beside = run(writer, file, dump + "/out" + writer.ending);
    INFO(writer.words.front() << ": " << beside.err);
    CHECK(beside.exit_code == 0);
    fs::remove_all(dump);
    write_call(dump);
    CHECK(run(writer, dump, folder / ("out" + writer.ending), {"--force"}).exit_code == 0);
    fs::remove_all(folder / ("out" + writer.ending));
    fs::remove_all(folder / ("out" + writer.ending + ".d"));
  }
}

TEST_CASE("nothing is written into the second capture of a comparison, nor into parts") {
  const TemporaryFolder folder;
  const std::string dump = folder / "dump", other = folder / "other";
  write_call(dump);
  write_call(other);
  for (const std::string& inside : {dump, other}) {
    const auto refused = run_attnscope({"diff", dump, other, "-o", inside + "/d.json", "--quiet"});
    INFO(refused.err);
    CHECK(refused.exit_code == 1);
    CHECK(contains(refused.err, "would stand in " + inside));
  }
  REQUIRE(run_attnscope({"convert", sample("moving-shapes"), "--layers", "0", "--shard", "0/1",
                         "-o", folder / "part", "--quiet"})
              .exit_code == 0);
  const auto before = files_in(folder.path());
  for (const std::string name : {"part", "part/whole"}) {
    const auto refused = run_attnscope({"merge", folder / "part", "-o", folder / name, "--force"});
    INFO(refused.err);
    CHECK(refused.exit_code == 1);
    CHECK(contains(refused.err, folder / "part"));
    CHECK(files_in(folder.path()) == before);
  }
}
