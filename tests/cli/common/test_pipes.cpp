// Pipes in the place of input files: the program refuses them, and does not wait for a writer.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/program.h"

using namespace attnscope::test;

namespace {

using Words = std::vector<std::string>;

void make_pipe(const std::string& path) { REQUIRE(mkfifo(path.c_str(), 0600) == 0); }

/// Where the program waited for the pipe, this would not end.
void check_refused(const Words& words, const std::string& name) {
  const ProgramResult result = run_attnscope(words);
  std::string line;
  for (const std::string& word : words) line += word + " ";
  INFO(line << "\n" << result.err);
  CHECK(result.exit_code == 1);
  CHECK(result.err.find(name) != std::string::npos);
  CHECK(std::filesystem::is_fifo(name));
}

}  // namespace

TEST_CASE("a capture that is a pipe is refused by every command, whatever its ending") {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  for (const std::string ending :
       {"", ".safetensors", ".json", ".h5", ".npz", ".npy", ".pt", ".csv", ".part"}) {
    const std::string pipe = folder / ("pipe" + ending);
    make_pipe(pipe);
    check_refused({"info", pipe}, pipe);
    check_refused({"info", pipe, "--json"}, pipe);
  }
  const std::string pipe = folder / "pipe.safetensors", good = sample("moving-shapes");
  for (const Words& words : {Words{"export", pipe, "-o", out + ".h5"},
                             {"stats", pipe},
                             {"query", pipe, "--index", "5"},
                             {"mask", pipe, "--mask", "window:8"},
                             {"render", pipe, "--picture", "matrix", "-o", out + ".png"},
                             {"diff", good, pipe},
                             {"diff", pipe, good},
                             {"rollout", pipe, "-o", out + ".png"},
                             {"verify", pipe},
                             {"convert", pipe, "-o", out},
                             {"merge", pipe, pipe, "-o", out + ".h5"}}) {
    check_refused(words, pipe);
  }
}

TEST_CASE("tensors, masks, tables and words that are pipes are refused") {
  const TemporaryFolder folder;
  const std::string good = sample("moving-shapes"), out = folder / "out";
  std::string pipe[] = {folder / "pipe.npy", folder / "pipe.json", folder / "pipe.csv",
                        folder / "pipe.h5", folder / "pipe.txt"};
  for (const std::string& name : pipe) make_pipe(name);
  const auto& [npy, json, csv, h5, text] = pipe;
  std::ofstream(folder / "tree.json") << R"({"or": [{"file": "pipe.npy", "block": 8}]})";
  std::filesystem::create_directory(folder / "dump");
  make_pipe(folder / "dump/capture.json");
  for (const auto& [words, name] : std::vector<std::pair<Words, std::string>>{
           {{"info", "--q", npy, "--k", npy}, npy},
           {{"info", good, "--cu-seqlens", npy}, npy},
           {{"stats", good, "--mask", npy}, npy},
           {{"mask", good, "--mask", npy, "--block", "8"}, npy},
           {{"mask", good, "--mask", json}, json},
           {{"mask", good, "--mask", folder / "tree.json", "--json"}, npy},
           {{"mask", good, "--mask", folder / "tree.json", "-o", out + ".json"}, npy},
           {{"convert", good, "--tokens", text, "-o", out}, text},
           {{"merge", json, json, "-o", out + ".json"}, json},
           {{"merge", csv, csv, "-o", out + ".csv"}, csv},
           {{"merge", h5, h5, "-o", out + ".h5"}, h5},
           {{"diff", json, json}, json},
           {{"diff", csv, csv}, csv},
           {{"info", folder / "dump"}, folder / "dump/capture.json"}}) {
    check_refused(words, name);
  }
}

TEST_CASE("what an interrupted run would have left is no pipe") {
  for (const Words& command : {Words{"stats"}, {"mask", "--mask", "window:8"}}) {
    for (const std::string end : {"", ".part", ".journal", ".part.new"}) {
      const TemporaryFolder folder;
      const std::string out = folder / "out.json";
      make_pipe(out + end);
      Words words = command;
      words.insert(words.begin() + 1, sample("moving-shapes"));
      words.insert(words.end(), {"-o", out, "--resume", "--quiet"});
      const ProgramResult result = run_attnscope(words);
      INFO(command.front() << " " << end << "\n" << result.err);
      if (end.empty() || end == ".part") CHECK(result.exit_code == 1);
    }
  }
}
