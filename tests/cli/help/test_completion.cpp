// Words that a shell may complete, and the scripts that ask for them.
#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/project_paths.h"
#include "tests/support/skip.h"
#include "tests/support/synthetic.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

using Words = std::vector<std::string>;

/// The completions of the last word behind the program's name.
Words completed(Words words) {
  words.insert(words.begin(), "__complete");
  const auto result = run_attnscope(words);
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  Words found;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    CHECK(std::count(line.begin(), line.end(), '\t') == 1);
    found.push_back(line.substr(0, line.find('\t')));
  }
  return found;
}

bool holds(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

TEST_CASE("commands, options and their words are completed") {
  CHECK(completed({"ex"}) == Words{"export"});
  CHECK(completed({""}).size() == 22);
  CHECK(completed({"--ver"}) == Words{"--version"});
  CHECK(completed({"-V"}) == Words{"-V"});
  CHECK(completed({"stats", "--sor"}) == Words{"--sort"});
  CHECK(holds(completed({"stats", "-"}), "-o"));
  CHECK(completed({"mask", "--mask", "top"}) == Words{"topk:", "topp:"});
  // Of other commands it is the call's own mask.
  CHECK_FALSE(holds(completed({"stats", "--mask", ""}), "topk:"));
  CHECK(completed({"stats", "--sort", "text_m"}) == Words{"text_mass"});
  CHECK(completed({"stats", "--sort=text_m"}) == Words{"--sort=text_mass"});
  CHECK(completed({"stats", "--sort", "=", "text_m"}) == Words{"text_mass"});
  CHECK(completed({"stats", "--sort", "="}).size() > 10);
  CHECK(completed({"export", "--kind", "self,cr"}) == Words{"self,cross"});
  CHECK(completed({"help", "to"}) == Words{"tokens"});
  CHECK(completed({"--quiet", "--memory", "1GiB", "stats", "--sor"}) == Words{"--sort"});
  CHECK(completed({"completion", ""}) == Words{"bash", "zsh", "fish"});
  // Files are the shell's, and nothing is known of words that mean nothing.
  CHECK(completed({"stats", "sam"}).empty());
  CHECK(completed({"stats", "--top", ""}).empty());
  CHECK(completed({"nothing", "--"}).empty());
}

TEST_CASE("numbers and names of the capture at hand are completed") {
  const std::string capture = sample("moving-shapes");
  CHECK(completed({"query", capture, "--layers", ""}) == Words{"0", "1", "2", "3"});
  CHECK(completed({"query", capture, "--heads", "0,"}) == Words{"0,0", "0,1", "0,2", "0,3"});
  CHECK(completed({"query", capture, "--steps", ""}).size() == 1);
  CHECK(completed({"query", "--memory", capture, "--layers", ""}).empty());
  CHECK(completed({"query", "/nowhere", "--layers", ""}).empty());
  CHECK(completed({"query", "/dev/null", "--layers", ""}).empty());
}

TEST_CASE("the words of options are those that the program takes") {
  struct Case {
    std::string command, option;
    Words more;
  };
  const std::string capture = sample("moving-shapes");
  const std::vector<Case> cases{
      {"render", "--picture", {"-o", "x.png"}},
      {"render", "--colour-map", {"-o", "x.png", "--picture", "mosaic"}},
      {"render", "--colour-scale", {"-o", "x.png", "--picture", "mosaic"}},
      {"render", "--pool", {"-o", "x.png", "--picture", "mosaic"}},
      {"diff", "--pool", {}},
      {"diff", "--colour-scale", {}},
      {"render", "--domain", {"-o", "x.png", "--picture", "mosaic"}},
      {"render", "--weighting", {"-o", "x.png", "--picture", "mosaic"}},
      {"query", "--domain", {}},
      {"query", "--mean", {}},
      {"export", "--compress", {"-o", "x.h5"}},
      {"export", "--product", {"-o", "x.h5"}},
      {"export", "--dtype", {"-o", "x.h5"}},
      {"synth", "--dtype", {"-o", "x"}},
      {"synth", "--head-kinds", {"-o", "x"}},
      {"synth", "--preset", {"-o", "x"}},
      {"bench", "--case", {}},
      {"stats", "--with", {}},
      {"stats", "--kind", {}},
      {"stats", "--layout", {}},
      {"stats", "--links", {}},
      {"stats", "--preset", {}}};
  for (const Case& each : cases) {
    INFO(each.command << " " << each.option);
    Words words{each.command};
    if (each.command != "bench" && each.command != "synth") words.push_back(capture);
    words.insert(words.end(), {each.option, "nothing"});
    words.insert(words.end(), each.more.begin(), each.more.end());
    const auto refused = run_attnscope(words);
    CHECK(refused.exit_code == 2);
    const Words known = completed({each.command, each.option, ""});
    REQUIRE(known.size() > 1);
    std::string list;
    for (const std::string& word : known) list += (list.empty() ? "" : ", ") + word;
    INFO(refused.err);
    CHECK(refused.err.find(each.option + ": expected " + list + " (got nothing)") !=
          std::string::npos);
    // A slip of the pen is told.
    *std::find(words.begin(), words.end(), "nothing") = known.back() + "x";
    const auto slip = run_attnscope(words);
    INFO(slip.err);
    CHECK(slip.exit_code == 2);
    CHECK(slip.err.find("; did you mean " + known.back() + "?") != std::string::npos);
  }
}

TEST_CASE("words that take more behind them are those that the program reads") {
  const std::string capture = sample("moving-shapes");
  // What begins a value is refused for what is missing, not as a name that does not exist.
  const std::vector<std::pair<std::string, std::string>> cases{
      {"mask", "--mask"},  {"mask", "--own-mask"},        {"stats", "--mask"},
      {"stats", "--rope"}, {"diff", "--product"},         {"stats", "--backend"},
      {"stats", "--sort"}, {"stats", "--class-threshold"}};
  for (const auto& [command, option] : cases) {
    const Words known = completed({command, option, ""});
    CHECK(known.size() > 2);
    for (const std::string& word : known) {
      INFO(command << " " << option << " " << word);
      const auto result = run_attnscope({command, capture, "--dry-run", option, word});
      for (const char* unknown : {"no such", "neither", "not known", "expected NAME=X"}) {
        const bool is_number =
            option == "--class-threshold" && unknown == std::string("expected NAME=X");
        CHECK((is_number || result.err.find(unknown) == std::string::npos));
      }
    }
  }
  CHECK(completed({"stats", "--rope", "ltx"}) ==
        Words{"ltx", "ltx:", "ltx2", "ltx2:", "ltx2-audio", "ltx2-audio:"});
  CHECK(completed({"stats", "--score", "linear:e"}) == Words{"linear:elu1"});
  CHECK(completed({"stats", "--threshold", "si"}) == Words{"sink="});
  CHECK(completed({"stats", "--mask", "w"}) == Words{"window:"});
}

TEST_CASE("numbers and names of an export's heads are completed") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  const std::vector<std::pair<std::string, Words>> exports{
      {"maps.h5", {"export", "--rows", "0:8"}},
      {"blocks.h5", {"export", "--block", "64"}},
      {"shards.h5", {"export", "--compress", "gzip", "--rows", "0:8"}},
      {"stats.h5", {"stats", "--sample", "4"}}};
  for (const auto& [name, how] : exports) {
    INFO(name);
    const std::string out = folder / name;
    Words words = how;
    words.insert(words.begin() + 1, capture);
    words.insert(words.end(), {"--layers", "1,3", "--heads", "2", "-o", out, "--quiet"});
    const auto written = run_attnscope(words);
    INFO(written.err);
    REQUIRE(written.exit_code == 0);
    CHECK(completed({"query", out, "--layers", ""}) == Words{"1", "3"});
    CHECK(completed({"query", out, "--heads", ""}) == Words{"2"});
    CHECK(completed({"query", out, "--steps", ""}) == completed({"query", capture, "--steps", ""}));
    CHECK(completed({"query", out, "--kind", ""}) == Words{"joint"});
  }
  write_bytes(folder.path() / "cut.h5", read_bytes(folder.path() / "maps.h5").substr(0, 700));
  CHECK(completed({"query", folder / "cut.h5", "--layers", ""}).empty());
}

TEST_CASE("bash completes with the script") {
  const TemporaryFolder folder;
  const auto script = run_attnscope({"completion", "bash"});
  CHECK(script.exit_code == 0);
  CHECK(run_attnscope({"completion", "tcsh"}).exit_code == 2);
  write_bytes(folder.path() / "complete.bash", script.out);
  write_bytes(folder.path() / "ask.bash",
              "set -u\nsource complete.bash\nCOMP_WORDS=(\"$@\")\nCOMP_CWORD=$(($# - 1))\n"
              "_attnscope\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
  const auto asked = [&](const std::string& words) {
    const std::string line = "cd '" + folder.path().string() + "' && bash ask.bash '" +
                             program_path() + "' " + words + " > said 2>&1";
    CHECK(std::system(line.c_str()) == 0);
    return read_bytes(folder.path() / "said");
  };
  CHECK(asked("ver") == "verify\n");
  CHECK(asked("query '\"" + sample("moving-shapes") + "\"' --layers 2") == "2\n");
  CHECK(asked("mask --mask topk") == "topk:\n");
  CHECK(asked("query '" + sample("moving-shapes") + "' --layers = 2") == "2\n");
}
