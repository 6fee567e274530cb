#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/synthetic.h"

using namespace attnscope::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// An error is one line that starts with the program's name.
bool is_one_error_line(const std::string& err) {
  return err.rfind("attnscope: ", 0) == 0 && err.find('\n') == err.size() - 1;
}

}  // namespace

TEST_CASE("help and version") {
  CHECK(run_attnscope({"--help"}).exit_code == 0);
  CHECK(run_attnscope({}).exit_code == 2);
  for (const std::string command : {"info", "export", "query", "mask", "rollout", "bench"}) {
    INFO(command);
    const auto result = run_attnscope({command, "--help"});
    CHECK(result.exit_code == 0);
    CHECK(contains(result.out, "Usage: "));
    CHECK(contains(result.out, "Examples:"));
    CHECK(result.err.empty());
  }
}

TEST_CASE("the version tells the commit, what computes and what was left out") {
  const auto version = run_attnscope({"--version"});
  INFO(version.out);
  CHECK(version.exit_code == 0);
  CHECK(run_attnscope({"-V"}).out == version.out);
  for (const auto& words : {std::vector<std::string>{"--version", "--json"}, {"--json", "-V"}}) {
    const auto answer = run_attnscope(words);
    REQUIRE(answer.exit_code == 0);
    const auto json = nlohmann::json::parse(answer.out);
    CHECK(json.at("format") == "attnscope-version/1");
    CHECK(json.at("version") == json.at("attnscope_version"));
    const auto join = [](const nlohmann::json& list) {
      std::string text;
      for (const auto& word : list) text += (text.empty() ? "" : ", ") + word.get<std::string>();
      return text;
    };
    std::string line = "attnscope " + json.at("version").get<std::string>();
    if (!json.at("commit").is_null()) {
      const auto commit = json.at("commit").get<std::string>();
      CHECK(commit.size() >= 8);
      CHECK(commit.find_first_not_of("0123456789abcdef") == std::string::npos);
      line += " (" + commit + ")";
    }
    CHECK(json.at("backends").front().get<std::string>().starts_with("cpu"));
    line += " " + join(json.at("backends"));
    if (!json.at("without").empty()) line += "; without " + join(json.at("without"));
    CHECK(version.out == line + "\n");
    const bool cuda = contains(join(json.at("backends")), "cuda");
    CHECK(cuda != contains(join(json.at("without")), "cuda"));
  }
}

TEST_CASE("the help --help shows a command's own options before shared ones, in 80 columns") {
  const std::vector<std::string> shared{"Bare tensors instead of a capture:",
                                        "A CAPTURE that is",
                                        "Facts (",
                                        "Selection (",
                                        "Computation:",
                                        "Several machines",
                                        "Side B (",
                                        "The picture's look:"};
  for (const std::string command :
       {"info", "export", "query", "stats", "render", "mask", "diff", "rollout", "plot", "figure",
        "view", "serve", "convert", "verify"}) {
    INFO(command);
    const std::string all = run_attnscope({command, "--help"}).out;
    const size_t footer = all.find("\nHelp:\n");
    REQUIRE(footer != std::string::npos);
    size_t first = footer;
    for (const std::string& heading : shared) first = std::min(first, all.find("\n" + heading));
    REQUIRE(first < footer);
    std::istringstream lines(all.substr(0, footer));
    size_t at = 0;
    for (std::string line; std::getline(lines, line); at += line.size() + 1) {
      INFO(line);
      if (line.starts_with("  ")) CHECK(line.size() <= 80);
      const bool heading = line.ends_with(":") && !line.starts_with(" ");
      if (!heading || at < first) continue;
      const bool known = std::any_of(shared.begin(), shared.end(), [&](const std::string& each) {
        return line.starts_with(each);
      });
      CHECK((known || line == "Queries:" || line == "Colours:"));
    }
    for (const char* own : {"\nOptions:\n", "\nWhat is shown first:\n", "\nWhat is written:\n",
                            "\nThe difference as a map (--product):\n"}) {
      const size_t place = all.find(own);
      CHECK((place == std::string::npos || place < first));
    }
  }
  const std::string query = run_attnscope({"query", "--help"}).out;
  CHECK(query.find("\nQueries:\n  --query T,Y,X") < query.find("\nOptions:\n"));
}

TEST_CASE("the help -h of every command is a page of 40 lines of 80 columns") {
  const std::string list = run_attnscope({"--help"}).out;
  std::istringstream lines(list.substr(list.find("Subcommands:\n") + 13));
  size_t commands = 0;
  for (std::string line; std::getline(lines, line) && line.starts_with("  ");) {
    const std::string command = line.substr(2, line.find(' ', 2) - 2);
    INFO(command);
    const auto page = run_attnscope({command, "-h"}), all = run_attnscope({command, "--help"});
    CHECK(page.exit_code == 0);
    CHECK(page.err.empty());
    CHECK(std::count(page.out.begin(), page.out.end(), '\n') <= 40);
    std::istringstream text(page.out);
    for (std::string row; std::getline(text, row);) CHECK(row.size() <= 80);
    CHECK(page.out.starts_with("Usage: attnscope " + command + " [OPTIONS]"));
    CHECK(contains(page.out, "Examples:\n  attnscope " + command));
    CHECK(contains(page.out, "All options: attnscope " + command + " --help\n"));
    // An option of the page stands in --help too, where nothing of the parsing library shows.
    const size_t options = page.out.find("\nOptions:\n  -");
    CHECK((options != std::string::npos || command == "completion"));
    if (options != std::string::npos) {
      const size_t name = options + 12;
      CHECK(contains(all.out, page.out.substr(name, page.out.find("  ", name) - name)));
    }
    for (const char* foreign :
         {" INT", ":INT", " TEXT", ":{", "{}", "{false}", "REQUIRED", "[capture", "\n\n\n"}) {
      CHECK_FALSE(contains(all.out, foreign));
    }
    ++commands;
  }
  CHECK(commands == 22);
}

TEST_CASE("misspelt words are errors with a suggestion") {
  const std::string capture = sample("moving-shapes");
  struct Case {
    std::vector<std::string> arguments;
    std::string part;
  };
  const std::vector<Case> cases{
      {{"exprot"}, "did you mean export?"},
      {{"info", capture, "--laeyrs", "0"}, "did you mean --layers?"},
      {{"info", capture, "--laeyrs=0"}, "did you mean --layers?"},
      {{"info", capture, "more"}, "unexpected argument more"},
      // An unknown option is named before one that is missing for it.
      {{"export", capture, "--outptu", "x.h5"}, "export: unknown option --outptu"},
      {{"render", capture, "--pictur", "matrix", "-o", "x.png"}, "did you mean --picture?"},
      {{"export", capture, "--hepl"}, "export: unknown option --hepl; did you mean --help?"},
      {{"export", capture}, "export: -o OUT.h5 is missing"},
      {{"export", capture, "--output"}, "-o OUT.h5: its value is missing"},
      {{"export", capture, "-o", "x.h5", "--product", "wieghts"}, "did you mean weights?"},
      {{"export", capture, "-o", "x.h5", "--backend", "cpuu"}, "did you mean cpu?"},
      {{"info", capture, "--preset", "cogvideo-5b"}, "cogvideox-5b"},
      {{"info", capture, "--score", "softmx"}, "did you mean softmax?"},
      {{"info", capture, "--mask", "casual"}, "did you mean causal?"},
      {{"query", capture, "--index", "1", "--domain", "vidoe"}, "did you mean video?"},
      {{"info", capture, "--layers", "-1"}, "the largest is last"},
      {{"info", capture, "--scale", "nan"}, "got NaN"},
  };
  for (const Case& c : cases) {
    const auto result = run_attnscope(c.arguments);
    INFO(c.part << "\n" << result.err);
    CHECK(result.exit_code == 2);
    CHECK(is_one_error_line(result.err));
    CHECK(contains(result.err, c.part));
    CHECK(result.out.empty());
  }
}

TEST_CASE("the option --output is taken for -o") {
  const TemporaryFolder folder;
  const std::string by_space = folder / "space.npy", by_sign = folder / "sign.npy";
  const std::vector<std::string> query{
      "query", sample("moving-shapes"), "--layers", "0", "--heads", "0", "--index", "700"};
  auto words = query;
  words.insert(words.end(), {"--output", by_space});
  REQUIRE(run_attnscope(words).exit_code == 0);
  words = query;
  words.insert(words.end(), {"--output=" + by_sign});
  REQUIRE(run_attnscope(words).exit_code == 0);
  const std::string bytes = read_file(by_space);
  CHECK(bytes.size() > 128);
  CHECK(read_file(by_sign) == bytes);
}

TEST_CASE("older and other spellings of options are taken, and shown nowhere") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes"), synth = folder / "synth";
  using Words = std::vector<std::string>;
  struct Case {
    Words command;
    Words other, own;
  };
  const std::vector<Case> cases{
      {{"stats", capture, "--layers", "0", "--heads", "0", "--json"},
       {"--threshold", "sink=0.5"},
       {"--class-threshold", "sink=0.5"}},
      {{"stats", capture, "--layers", "0", "--heads", "0", "--json"},
       {"--own-mask", "causal"},
       {"--mask", "causal"}},
      {{"synth", "--grid", "4x4x4", "-o", synth, "--dry-run", "--json"},
       {"--layers", "2", "--steps=3", "--heads", "2", "--kinds", "temporal"},
       {"--num-layers", "2", "--num-steps=3", "--num-heads", "2", "--head-kinds", "temporal"}}};
  for (const Case& each : cases) {
    Words words = each.command, old = each.command;
    words.insert(words.end(), each.own.begin(), each.own.end());
    old.insert(old.end(), each.other.begin(), each.other.end());
    const auto expected = run_attnscope(words), got = run_attnscope(old);
    INFO(each.other.front() << "\n" << got.err);
    REQUIRE(expected.exit_code == 0);
    CHECK(got.exit_code == 0);
    CHECK(got.out == expected.out);
    CHECK(expected.out != run_attnscope(each.command).out);
    const std::string help = run_attnscope({each.command.front(), "--help"}).out;
    CHECK(contains(help, "  " + each.own.front() + " "));
    CHECK_FALSE(contains(help, "  " + each.other.front() + " "));
  }
  const auto draw = [&](const std::string& spelling, const std::string& file) {
    const auto result = run_attnscope({"render", capture, "--layers", "0", "--picture", "mosaic",
                                       spelling, "grey", "-o", folder / file, "--quiet"});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return read_file(folder / file);
  };
  CHECK(draw("--colour-map", "a.png") == draw("--colormap", "b.png"));
  CHECK(read_file(folder / "a.png") == draw("--color-map", "c.png"));
  // Of mask it is what is measured, beside the call's own.
  const auto mask = run_attnscope({"mask", capture, "--layers", "0", "--mask", "causal",
                                   "--own-mask", "window:64", "--dry-run"});
  INFO(mask.err);
  CHECK(mask.exit_code == 0);
}

TEST_CASE("what stands before the subcommand is taken or refused, never ignored") {
  const std::string capture = sample("moving-shapes");
  const std::vector<std::string> stats{"stats", capture, "--layers", "0", "--heads", "0"};
  const auto with = [&](std::vector<std::string> before, const std::vector<std::string>& after) {
    before.insert(before.end(), stats.begin(), stats.end());
    before.insert(before.end(), after.begin(), after.end());
    return run_attnscope(before);
  };
  SECTION("options that every command understands work in both places") {
    const auto behind = with(
        {}, {"--json", "--quiet", "--threads", "1", "--backend", "reference", "--memory=1GiB"});
    REQUIRE(behind.exit_code == 0);
    CHECK(contains(behind.out, "attnscope-stats/1"));
    const auto before = with(
        {"--json", "--quiet", "--threads", "1", "--backend", "reference", "--memory=1GiB"}, {});
    CHECK(before.exit_code == 0);
    CHECK(before.err.empty());
    CHECK(before.out == behind.out);
  }
  SECTION("they are obeyed") {
    const auto small = with({"--memory", "1KB"}, {});
    CHECK(small.exit_code != 0);
    CHECK(is_one_error_line(small.err));
    const auto unknown = with({"--backend", "cpuu"}, {});
    CHECK(unknown.exit_code == 2);
    CHECK(contains(unknown.err, "did you mean cpu?"));
    const auto stranger = run_attnscope({"--threads", "2", "info", capture});
    CHECK(stranger.exit_code == 2);
    CHECK(contains(stranger.err, "--threads"));
  }
  SECTION("everything else is an error that names it") {
    for (const std::string word : {"zzz", "--layers", "--layers=0", "-o", capture.c_str()}) {
      const auto result = with({word}, {});
      INFO(word << "\n" << result.err);
      CHECK(result.exit_code == 2);
      CHECK(is_one_error_line(result.err));
      CHECK(contains(result.err, word.substr(0, 8)));
      CHECK(result.out.empty());
    }
    const auto lost = run_attnscope({"--memory", "1GiB"});
    CHECK(lost.exit_code == 2);
    CHECK(contains(lost.err, "which subcommand?"));
  }
}

TEST_CASE("requests that cannot be meant are refused and leave nothing behind") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  const std::string out = folder / "out.h5";
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    std::string part;
  };
  const std::vector<Case> cases{
      {{"export", capture}, 2, "-o"},
      {{"export", "-o", out}, 2, "CAPTURE"},
      {{"export", folder / "missing", "-o", out}, 1, "missing"},
      {{"export", capture, "--q", "a.npy", "--k", "b.npy", "-o", out}, 2, "not both"},
      {{"export", "--q", "a.npy", "-o", out}, 2, "--k is missing"},
      {{"export", capture, "-o", out, "--layers", "9"}, 2, "9"},
      {{"export", capture, "-o", out, "--heads", "4-5"}, 2, "0-3"},
      {{"export", capture, "-o", out, "--rows", "5:5"}, 2, "--rows"},
      {{"export", capture, "-o", out, "--cols", "0:1025"}, 2, "1024"},
      {{"export", capture, "-o", out, "--dtype", "u8", "--product", "logits"}, 2, "f32 or f16"},
      {{"export", capture, "-o", out, "--product", "lse", "--score", "sigmoid"}, 2, "no LSE"},
      {{"export", capture, "-o", out, "--product", "rows"}, 2, "--queries"},
      {{"export", capture, "-o", out, "--product", "weights", "--index", "3"}, 2, "rows"},
      {{"export", capture, "-o", out, "--query", "7,0,0"}, 2, "0 to 6"},
      {{"export", capture, "-o", out, "--query", "1,2"}, 2, "T,Y,X"},
      {{"export", capture, "-o", out, "--index", "1024"}, 2, "1023"},
      {{"export", capture, "-o", out, "--grid", "7x12x13"}, 2, "1024"},
      {{"export", capture, "-o", out, "--scale", "-1"}, 2, "scale"},
      {{"export", capture, "-o", out, "--scale", "nan"}, 2, "scale"},
      {{"export", capture, "-o", out, "--memory", "12"}, 2, "--memory"},
      {{"export", capture, "-o", out, "--memory", "64KiB"}, 1, "smallest"},
      {{"export", capture, "-o", out, "--threads", "0"}, 2, "--threads"},
      {{"export", capture, "-o", out, "--backend", "cuda"}, 1, "CUDA"},
      {{"export", capture, "-o", folder / "no/such/folder/out.h5"}, 1, "folder"},
      {{"query", capture}, 2, "--query"},
      {{"query", capture, "--query", "0,0,0", "-o", folder / "x.jpg"}, 2, ".png"},
      {{"query", capture, "--query", "0,0,0", "--domain", "pixels"}, 2, "frame"},
  };
  for (const Case& c : cases) {
    // On a machine with a device there is to be none.
    const auto result = run_attnscope(c.arguments, {.environment = {"CUDA_VISIBLE_DEVICES="}});
    std::string line;
    for (const auto& argument : c.arguments) line += argument + " ";
    INFO(line << "\n" << result.err);
    CHECK(result.exit_code == c.exit_code);
    CHECK(is_one_error_line(result.err));
    CHECK(contains(result.err, c.part));
    CHECK(std::filesystem::is_empty(folder.path()));
  }
}

TEST_CASE("info tells what a capture holds") {
  const auto text = run_attnscope({"info", sample("moving-shapes")});
  INFO(text.err);
  REQUIRE(text.exit_code == 0);
  for (const std::string part : {"7x12x12", "16@start", "joint", "bf16", "0.125", "finite"}) {
    INFO(part);
    CHECK(contains(text.out, part));
  }
  const auto json = run_attnscope({"info", sample("moving-shapes"), "--json", "--layers", "1"});
  REQUIRE(json.exit_code == 0);
  CHECK(contains(json.out, "\"attnscope-info/1\""));
  CHECK(contains(json.out, "\"queries\": 1024"));
}

TEST_CASE("query prints a summary, and its masses add up") {
  const auto result = run_attnscope({"query", sample("moving-shapes"), "--query", "3,8,7",
                                     "--layers", "2", "--heads", "0", "--steps", "10", "--quiet"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  CHECK(contains(result.out, "layer 2"));
  CHECK(contains(result.out, "frames"));
}

TEST_CASE("a query without a token grid goes to a table, and to nothing that needs one") {
  const TemporaryFolder folder;
  write_synthetic_head(folder / "head.safetensors", 50, 8);
  const std::vector<std::string> query{
      "query", folder / "head.safetensors", "--index", "5", "--quiet", "-o"};
  auto arguments = query;
  arguments.push_back(folder / "row.csv");
  const auto result = run_attnscope(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const std::string table = read_file(folder / "row.csv");
  CHECK(std::count(table.begin(), table.end(), '\n') == 51);
  CHECK(contains(table, ",,,self,0,0,video,49,,,,,"));
  arguments = query;
  arguments.push_back(folder / "row.npy");
  const auto refused = run_attnscope(arguments);
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.err, "--grid"));
}

TEST_CASE("texts from files cannot break a line or steer a terminal") {
  const TemporaryFolder folder;
  const std::string path = folder / "odd.safetensors";
  const std::string header =
      R"({"q\n\u001b[31m":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  std::ofstream(path, std::ios::binary) << bytes << header << "1234";
  const auto result = run_attnscope({"info", path});
  INFO(result.err);
  CHECK(result.exit_code == 1);
  CHECK(is_one_error_line(result.err));
  CHECK(contains(result.err, "q\\n\\x1b[31m"));
}
