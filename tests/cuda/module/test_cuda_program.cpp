#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/project_paths.h"

using namespace attnscope::test;

namespace {

const std::string kNoDevices = "CUDA_VISIBLE_DEVICES=";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The numbers of one head of the sample, with these options more.
std::vector<std::string> stats_of_a_head(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{
      "stats", sample("moving-shapes"), "--steps", "10", "--layers", "0", "--heads", "0", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void check_one_line(const ProgramResult& result, int exit_code, const std::string& part) {
  INFO(result.err << "\nexpected: " << part);
  CHECK(result.exit_code == exit_code);
  CHECK((result.out.empty() || contains(result.out, "attnscope-error/1")));
  CHECK(result.err.rfind("attnscope: ", 0) == 0);
  CHECK(result.err.find('\n') == result.err.size() - 1);
  CHECK(contains(result.err, part));
}

}  // namespace

TEST_CASE("without a device --backend cuda ends in one line and leaves nothing") {
  const TemporaryFolder folder;
  const std::vector<std::string> arguments{
      "export", sample("moving-shapes"), "-o", folder / "maps.h5", "--backend", "cuda"};
  const auto result = run_attnscope(arguments, {.environment = {kNoDevices}});
  check_one_line(result, 1,
                 cuda_built() ? "backend cuda: no CUDA device: "
                              : "backend cuda: this attnscope was not built with CUDA");
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("the program itself needs none of CUDA's libraries") {
  // The loader lists what a program needs, and does not start it.
  const auto result = run_attnscope({}, {.environment = {"LD_TRACE_LOADED_OBJECTS=1"}});
  INFO(result.out);
  CHECK(contains(result.out, "libstdc++"));
  for (const std::string name : {"libcuda", "libcublas", "libnv", "attnscope_cuda"}) {
    CHECK_FALSE(contains(result.out, name));
  }
}

TEST_CASE("the module is loaded only when it is asked for") {
  const std::vector<std::string> environment{"LD_DEBUG=files", kNoDevices};
  const auto cpu =
      run_attnscope(stats_of_a_head({"--backend", "cpu"}), {.environment = environment});
  CHECK(cpu.exit_code == 0);
  CHECK(contains(cpu.err, "libstdc++"));
  CHECK_FALSE(contains(cpu.err, "attnscope_cuda.so"));
  if (!std::filesystem::exists("/dev/nvidiactl") && !std::filesystem::exists("/dev/dxg")) {
    const auto automatic = run_attnscope(stats_of_a_head({}), {.environment = environment});
    CHECK(automatic.exit_code == 0);
    CHECK_FALSE(contains(automatic.err, "attnscope_cuda.so"));
  }
  const auto cuda =
      run_attnscope(stats_of_a_head({"--backend", "cuda"}), {.environment = environment});
  CHECK(cuda.exit_code == 1);
  CHECK(contains(cuda.err, "attnscope_cuda.so") == cuda_built());
}

TEST_CASE("options of devices are checked, and are for backends that have a device") {
  struct Case {
    std::vector<std::string> options;
    std::string part;
  };
  const std::vector<Case> cases{
      {{"--vram", "4GiB", "--backend", "cpu"}, "--vram 4GiB: backend cpu has no device memory"},
      {{"--vram", "50%", "--backend", "reference"}, "--vram 50%: backend reference"},
      {{"--vram", "4"}, "--vram 4: needs a unit"},
      {{"--vram", "101%"}, "at most 100%"},
      {{"--vram", "0%", "--backend", "cuda"}, "above 0%"},
      {{"--vram", "much", "--backend", "cuda"}, "--vram much: expected a size"},
      {{"--profile", "--backend", "cpu"}, "--profile: backend cpu uses no device"},
      {{"--profile", "--backend", "reference"}, "--profile: backend reference"},
      {{"--tf32", "--backend", "cpu"}, "--tf32: backend cpu uses no device"},
      {{"--backend", "cuda-tf32"}, "--backend cuda --tf32"},
      {{"--backend", "cuda-mam"}, "did you mean cuda-mma?"},
  };
  for (const Case& c : cases) check_one_line(run_attnscope(stats_of_a_head(c.options)), 2, c.part);
}

TEST_CASE("where auto takes the cpu, what is for a device is refused") {
  const ProgramSettings settings{.environment = {kNoDevices}};
  for (const char* const quiet : {"--quiet", ""}) {
    const auto refused = [&](std::vector<std::string> options, const std::string& line) {
      if (*quiet != '\0') options.emplace_back(quiet);
      check_one_line(run_attnscope(stats_of_a_head(options), settings), 2, line);
    };
    refused({"--vram", "50%"}, "--vram: cpu (");
    refused({"--profile"}, "--profile: cpu (");
    refused({"--tf32"}, "--tf32: cpu (");
  }
}

TEST_CASE("modules that cannot be used each have their line") {
  if (!can_use_cuda_module()) return;
  const TemporaryFolder folder;
  struct Case {
    std::string module, part, line;
  };
  const std::vector<Case> cases{
      {folder / "none.so", "", "none.so: cannot open shared object file"},
      {cuda_test_file("attnscope_needs_absent.so"), "", "libattnscope_absent.so: cannot open"},
      {cuda_test_file("attnscope_stand_in.so"), "other-version", "another build of attnscope"},
      {cuda_test_file("attnscope_stand_in.so"), "no-device", "no CUDA device: this one"},
      {cuda_test_file("attnscope_stand_in.so"), "throws", "backend cuda: thrown in the module"},
  };
  for (const Case& c : cases) {
    const auto result = run_attnscope(
        stats_of_a_head({"--backend", "cuda"}),
        {.environment = {"ATTNSCOPE_CUDA_MODULE=" + c.module, "ATTNSCOPE_STAND_IN=" + c.part}});
    check_one_line(result, 1, c.line);
  }
}

TEST_CASE("a module's backend computes, gets the options, and its notices are notes") {
  if (!can_use_cuda_module()) return;
  const ProgramSettings settings{
      .environment = {"ATTNSCOPE_CUDA_MODULE=" + cuda_test_file("attnscope_stand_in.so")}};
  const auto run = [&](const std::vector<std::string>& options) {
    const auto result = run_attnscope(stats_of_a_head(options), settings);
    INFO(result.err);
    CHECK(result.exit_code == 0);
    return result;
  };
  const auto share = run({"--backend", "cuda", "--vram", "25%", "--threads", "3"});
  CHECK(contains(share.err, "attnscope: note: cuda: bytes 0 share 0.250000 threads 3\n"));
  const auto bytes = run({"--backend", "cuda", "--vram", "3MB"});
  CHECK(contains(bytes.err, "note: cuda: bytes 3000000 share 0.000000 threads 0\n"));
  const auto quiet = run({"--backend", "cuda", "--quiet"});
  CHECK(quiet.err.empty());
  // The stand-in computes as the reference does, but for its name.
  std::string expected = run({"--backend", "reference", "--quiet"}).out;
  CHECK(contains(expected, "entropy"));
  const size_t name = expected.find("\"reference\"");
  if (name != std::string::npos) expected.replace(name, 11, "\"cuda\"");
  CHECK(quiet.out == expected);
}
