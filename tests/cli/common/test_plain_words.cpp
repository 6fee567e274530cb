// The program answers bad command lines and bad files in its own words, without the words, types
// and addresses of the libraries that found them out.
#include <filesystem>
#include <fstream>

#include "tests/cli/common/fault_settings.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"

using namespace attnscope::test;

namespace {

using Arguments = std::vector<std::string>;

/// The first text of a library in what was said; empty where there is none.
std::string library_text(const std::string& said) {
  for (const char* text : {"0x",
                           "json.exception",
                           "std::",
                           "basic_string",
                           "vector::",
                           "_M_",
                           "HDF5-DIAG",
                           "H5F",
                           "CLI::",
                           "errno",
                           "buf = ",
                           " = ",
                           "bad_alloc",
                           "filesystem error",
                           "terminate",
                           "required but",
                           "is required",
                           "required ",
                           "Could not convert",
                           "not in range",
                           "not in {",
                           "not allowed",
                           "disallowed",
                           "Resource temporarily"}) {
    if (said.find(text) != std::string::npos) return text;
  }
  return "";
}

bool is_one_line(const std::string& err) {
  return err.starts_with("attnscope: ") && err.find('\n') == err.size() - 1;
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("bad command lines are answered with the option, what was expected and what came") {
  const std::string s = sample("moving-shapes");
  struct Case {
    Arguments arguments;
    std::string said;
  };
  const std::vector<Case> cases{
      {{"export", s}, "export: -o OUT.h5 is missing (see attnscope export --help)"},
      {{"synth"}, "synth: -o CAPTURE is missing"},
      {{"render", s, "-o", "x.png"}, "render: --picture"},
      {{"export", s, "-o"}, "-o OUT.h5: its value is missing"},
      {{"stats", s, "--memory"}, "--memory SIZE: its value is missing"},
      {{"query", s, "--index"}, "--index N: its value is missing"},
      {{"export", s, "-o", "a.h5", "-o", "b.h5"}, "-o OUT.h5: expected once (got a.h5 and b.h5)"},
      {{"info", s, "--layers", "1", "--layers", "2"}, "expected once (got 1 and 2)"},
      {{"stats", s, "--threads", "0"}, "--threads: expected 1 to 4096 (got 0)"},
      {{"stats", s, "--threads", "abc"}, "--threads: expected a whole number (got abc)"},
      {{"query", s, "--index", "1.5"}, "--index: expected a whole number (got 1.5)"},
      {{"synth", "--seed", "x", "-o", "y"}, "--seed: expected a whole number (got x)"},
      {{"export", s, "-o", "x.h5", "--compress", "zip"},
       "--compress: expected none, gzip (got zip)"},
      {{"export", s, "-o", "x.h5", "--topk", "99999999999999999999"}, "--topk: expected"},
      {{"bench", "--case", "foo"}, "--case: expected lse, weights"},
      {{"stats", s, "--quiet=maybe"}, "--quiet: takes no value"},
      {{"stats", s, "--json=7"}, "--json: takes no value"},
      {{"export", s, "-o", ""}, "-o: expected a value (got an empty text)"},
      {{"stats", s, "-o", ""}, "-o: expected a value"},
      {{"query", s, "--index", "3", "-o", ""}, "-o: expected a value"},
      {{"convert", s, "-o", ""}, "-o: expected a value"},
      {{"render", s, "--picture", "mosaic", "-o", ""}, "-o: expected a value"},
      {{"view", s, "--screenshot", ""}, "--screenshot: expected a value"},
      {{"info", ""}, "expected a value"},
      {{"info", s, "--", "--foo"}, "--foo"},
      {{"info", s, "-x"}, "unknown option -x"},
      {{"--helper-process"}, "a helper process is started by attnscope itself"}};
  for (const Case& c : cases) {
    const auto result = run_attnscope(c.arguments);
    INFO(c.said << "\n" << result.err);
    CHECK(result.exit_code == 2);
    CHECK(is_one_line(result.err));
    CHECK(result.err.find(c.said) != std::string::npos);
    CHECK(library_text(result.err) == "");
    CHECK(result.out.empty());
  }
}

TEST_CASE("bad files are answered without a library's words") {
  const TemporaryFolder folder;
  const std::string s = sample("moving-shapes");
  const auto file = [&](const std::string& name, const std::string& text) {
    write_text(folder / name, text);
    return folder / name;
  };
  const std::string whole = folder / "whole.h5";
  REQUIRE(run_attnscope({"export", s, "--layers", "0", "--heads", "0", "-o", whole, "--quiet"})
              .exit_code == 0);
  const std::string bytes = read_file(whole);
  const std::string stats = folder / "stats.json";
  const std::string deep(100'000, '[');
  std::vector<Arguments> commands{
      {"info", file("cut.h5", bytes.substr(0, 600))},
      {"info", file("cut-late.h5", bytes.substr(0, bytes.size() - 9))},
      {"info", file("signature.h5", bytes.substr(0, 8) + std::string(500, '\xff'))},
      {"info", file("a.json", "{\"format\": 3, ")},
      {"info", file("a.safetensors", std::string("\x0c\0\0\0\0\0\0\0", 8) + "{\"a\": [[[}}}")},
      {"info", file("a.npy", "\x93NUMPY\x01")},
      {"info", file("a.npz", "PK\x03\x04 and no more")},
      {"info", file("a.pt", "PK\x03\x04")},
      {"info", folder / "not-there"},
      {"view", s, "--script", file("script.txt", "fly away\n"), "--screenshot", folder / "x.png"},
      {"query", s, "--text-token", "zebra"},
      {"render", s, "--picture", "filmstrip", "--index", "300", "--overlay",
       file("overlay.png", "\x89PNG\r\n\x1a\n..."), "-o", folder / "film.png"},
      {"stats", s, "-o", file("other.json", "{\"format\": 1}"), "--resume"},
      {"stats", s, "-o", file("list.json", "[1, 2]"), "--resume"},
      {"convert", s, "--tokens", file("tokens.json", "[\"a\", {\"b\": "), "-o", folder / "c"},
      {"convert", s, "--tokens", file("deep.json", deep), "-o", folder / "d"}};
  std::filesystem::create_directory(folder / "capture");
  write_text(folder / "capture/capture.json",
             "{\"format\": \"attnscope-capture/1\", \"files\": 3}");
  commands.push_back({"info", folder / "capture"});
  for (const auto& entry : std::filesystem::directory_iterator(test_data("hostile/hdf5"))) {
    commands.push_back({"info", entry.path(), "--json"});
  }
  for (const Arguments& command : commands) {
    const auto result = run_attnscope(command);
    INFO(command[1] << "\n" << result.err);
    CHECK(library_text(result.err) == "");
    CHECK((result.exit_code == 1 || result.exit_code == 2 || command.back() == "--json"));
  }
}

TEST_CASE("a disk that takes no more is said without a library's words") {
  const TemporaryFolder folder;
  const std::string s = sample("moving-shapes");
  for (const Arguments& more :
       {Arguments{"query", s, "--index", "300"}, Arguments{"export", s, "--block", "64"},
        Arguments{"export", s, "--compress", "gzip"}, Arguments{"stats", s}}) {
    Arguments command = more;
    command.insert(command.end(),
                   {"--layers", "0", "--heads", "0", "-o", folder / "out.h5", "--quiet"});
    ProgramSettings settings;
    settings.max_file_bytes = 8192;
    // HDF5 forgets memory where a write of its own fails.
    settings.environment = {"ASAN_OPTIONS=detect_leaks=0"};
    const auto result = run_attnscope(command, settings);
    INFO(command[0] << " " << command[2] << "\n" << result.err);
    CHECK(result.exit_code == 1);
    // Of `stats` what was measured is kept, which a line of its own says.
    const size_t kept = result.err.find("--resume goes on\n");
    CHECK((kept == std::string::npos || command[0] == "stats"));
    CHECK(is_one_line(kept == std::string::npos ? result.err
                                                : result.err.substr(result.err.find('\n') + 1)));
    CHECK(library_text(result.err) == "");
    CHECK(result.err.find("File too large") != std::string::npos);
    std::filesystem::remove(folder / "out.h5.part");
  }
}

TEST_CASE("threads that the system denies are counted") {
  const auto result = run_attnscope(
      {"stats", sample("moving-shapes"), "--threads", "100", "--quiet"}, with_fault("thread", 30));
  INFO(result.err);
  CHECK(result.exit_code == 1);
  CHECK(is_one_line(result.err));
  CHECK(library_text(result.err) == "");
  CHECK(result.err.find("attnscope: the system started ") == 0);
  CHECK(result.err.find(" of 100 threads and no more") != std::string::npos);
}
