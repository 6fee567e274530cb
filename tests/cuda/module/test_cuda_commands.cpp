// Commands from end to end on the CUDA backend: the module that they load runs on the emulation.
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/project_paths.h"

using namespace attnscope::test;

namespace {

const ProgramSettings& emulated() {
  static const ProgramSettings settings{
      .environment = {"ATTNSCOPE_CUDA_MODULE=" + cuda_test_file("attnscope_emulated_module.so")}};
  return settings;
}

ProgramResult run(std::vector<std::string> arguments, const std::string& backend) {
  arguments.insert(arguments.end(), {"--backend", backend, "--quiet"});
  const auto result = run_attnscope(arguments, emulated());
  INFO(arguments[0] << " " << backend << "\n" << result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  return result;
}

std::vector<std::string> of_the_sample(const std::string& command,
                                       const std::vector<std::string>& more) {
  std::vector<std::string> arguments{command, sample("moving-shapes"), "--steps", "10", "--layers",
                                     "0,2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// The numbers of a text, in order.
std::vector<double> numbers_of(const std::string& text) {
  std::vector<double> numbers;
  for (const char* at = text.c_str(); *at != 0;) {
    char* end = nullptr;
    const double number = std::strtod(at, &end);
    const bool word = at != text.c_str() && std::isalnum(static_cast<unsigned char>(at[-1])) != 0;
    if (end == at || word) {
      // The digits of a name ("cpu-bf16") are no number, none of them.
      do {
        ++at;
      } while (word && std::isalnum(static_cast<unsigned char>(*at)) != 0);
      continue;
    }
    numbers.push_back(number);
    at = end;
  }
  return numbers;
}

std::vector<float> floats_of(const std::string& npy) {
  const std::string bytes = read_file(npy);
  const size_t begin = bytes.find('\n') + 1;
  std::vector<float> values((bytes.size() - begin) / sizeof(float));
  std::memcpy(values.data(), bytes.data() + begin, values.size() * sizeof(float));
  return values;
}

}  // namespace

TEST_CASE("stats on an emulated device are those of the cpu") {
  if (!can_use_cuda_module()) return;
  const auto arguments = of_the_sample("stats", {"--json"});
  const auto got = numbers_of(run(arguments, "cuda").out);
  const auto expected = numbers_of(run(arguments, "cpu").out);
  REQUIRE(got.size() == expected.size());
  CHECK(got.size() > 50);
  for (size_t i = 0; i < got.size(); ++i) {
    INFO("number " << i);
    CHECK(std::fabs(got[i] - expected[i]) <= 1e-6 + 1e-3 * std::fabs(expected[i]));
  }
}

TEST_CASE("a query on an emulated device gives the volumes of the cpu") {
  if (!can_use_cuda_module()) return;
  const TemporaryFolder folder;
  for (const std::string backend : {"cuda", "cpu"}) {
    run({"query", sample("moving-shapes"), "--steps", "10", "--layers", "0", "--heads", "1",
         "--query", "1,2,3", "-o", folder / (backend + ".npy")},
        backend);
  }
  const auto got = floats_of(folder / "cuda.npy");
  const auto expected = floats_of(folder / "cpu.npy");
  REQUIRE(got.size() == expected.size());
  double sum = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    sum += static_cast<double>(expected[i]);
    CHECK(std::fabs(got[i] - expected[i]) <=
          1e-3f / static_cast<float>(got.size()) + 2e-4f * expected[i]);
  }
  CHECK(sum > 0.01);
}

TEST_CASE("an export on an emulated device is whole, and says which backend made it") {
  if (!can_use_cuda_module()) return;
  const TemporaryFolder folder;
  for (const std::string product : {"weights", "output"}) {
    const std::string file = folder / (product + ".h5");
    run(of_the_sample("export", {"-o", file, "--product", product}), "cuda");
    const auto verified = run_attnscope({"verify", file});
    INFO(verified.out << verified.err);
    CHECK(verified.exit_code == 0);
    CHECK(run_attnscope({"info", file, "--json"}).out.find("\"cuda-mma\"") != std::string::npos);
  }
}

TEST_CASE("a profile of an export's launches is printed when it is done") {
  if (!can_use_cuda_module()) return;
  const TemporaryFolder folder;
  for (const std::string product : {"weights", "output"}) {
    const std::vector<std::string> arguments =
        of_the_sample("export", {"-o", folder / (product + ".h5"), "--product", product,
                                 "--backend", "cuda", "--quiet", "--profile", "--json"});
    const auto result = run_attnscope(arguments, emulated());
    INFO(result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.out.find("us/launch") == std::string::npos);
    CHECK(result.err.rfind("device ", 0) == 0);
    CHECK(result.err.find("\n0 Emulated device  ") != std::string::npos);
    for (const std::string part : {"row sums  ", "entries  ", "mma  ", "combine rows  ",
                                   "copy to the device  ", "copy to the host  "}) {
      INFO(part);
      CHECK(result.err.find("  " + part) != std::string::npos);
    }
    const bool multiplied = result.err.find("weights times values") != std::string::npos;
    CHECK(multiplied == (product == "output"));
  }
}

TEST_CASE("a command that fails says why, and no profile") {
  if (!can_use_cuda_module()) return;
  const auto file = run_attnscope({"export", sample("moving-shapes"), "-o", "/nowhere/a.h5",
                                   "--backend", "cuda", "--profile", "--quiet"},
                                  emulated());
  INFO(file.err);
  CHECK(file.exit_code != 0);
  CHECK(file.err.rfind("attnscope: ", 0) == 0);
  CHECK(file.err.find('\n') == file.err.size() - 1);
}

TEST_CASE("an export can be made again by the kernels that it names") {
  if (!can_use_cuda_module()) return;
  const TemporaryFolder folder;
  const auto make = [&](const std::string& name, const std::vector<std::string>& more) {
    auto arguments = of_the_sample(
        "export", {"-o", folder / (name + ".h5"), "--heads", "0", "--layers", "0", "--quiet"});
    arguments.erase(arguments.begin() + 4, arguments.begin() + 6);
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_attnscope(arguments, emulated());
  };
  for (const std::string backend : {"cuda", "cuda-mma", "cuda-cublas"}) {
    const auto result = make(backend, {"--backend", backend});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  }
  CHECK(read_file(folder / "cuda.h5") == read_file(folder / "cuda-mma.h5"));
  const auto none = make("none", {"--backend", "cuda-wgmma"});
  CHECK(none.exit_code == 1);
  CHECK(none.err ==
        "attnscope: backend cuda-wgmma: Emulated device has compute capability 8.0, "
        "the kernels need 9.0\n");
  CHECK_FALSE(std::filesystem::exists(folder / "none.h5"));
}

TEST_CASE("an export of float32 tensors says that TF32 multiplied them") {
  if (!can_use_cuda_module()) return;
  const TemporaryFolder folder;
  for (const std::string dtype : {"f32", "bf16"}) {
    const std::string capture = folder / dtype;
    REQUIRE(run_attnscope({"synth", "-o", capture, "--grid", "2x8x8", "--text", "none",
                           "--head-dim", "32", "--dtype", dtype, "--quiet"})
                .exit_code == 0);
    const std::string file = folder / (dtype + ".h5");
    const auto result =
        run_attnscope({"export", capture, "-o", file, "--backend", "cuda", "--tf32"}, emulated());
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    const bool rounded = dtype == "f32";
    const std::string about = run_attnscope({"info", file, "--json"}).out;
    CHECK((about.find("\"cuda-tf32\"") != std::string::npos) == rounded);
    CHECK((about.find("\"cuda-mma\"") != std::string::npos) == !rounded);
    const std::string note = "note: cuda: --tf32 changes nothing for bf16 tensors";
    CHECK((result.err.find(note) == std::string::npos) == rounded);
  }
}

TEST_CASE("an export on an emulated device keeps to its memory") {
  if (!can_use_cuda_module()) return;
  const TemporaryFolder folder;
  const auto result =
      run_attnscope({"export", sample("moving-shapes"), "-o", folder / "a.h5", "--steps", "10",
                     "--layers", "0", "--backend", "cuda", "--vram", "1MB", "--quiet"},
                    emulated());
  INFO(result.err);
  CHECK(result.exit_code == 0);
}
