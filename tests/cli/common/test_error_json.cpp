// Errors as programs read them: attnscope-error/1 on standard output.
#include <nlohmann/json.hpp>

#include "io/files/file_text.h"
#include "io/files/json_types.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/synthetic.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The error that a command ends with; the same message stands on standard error.
Json error_of(std::vector<std::string> words, int exit_code) {
  const auto silent = run_attnscope(words);
  CHECK(silent.exit_code == exit_code);
  CHECK(silent.out.empty());
  words.push_back("--json");
  const auto result = run_attnscope(words);
  INFO(result.err);
  REQUIRE(result.exit_code == exit_code);
  Json error = Json::parse(result.out);
  CHECK(error.at("format") == "attnscope-error/1");
  CHECK(error.size() == 5);
  CHECK(has(result.err, error.at("message").get<std::string>()));
  return error;
}

std::string write_call(const std::string& path, float value) {
  std::vector<float> values(2 * 6 * 4, 0.5F);
  values[9] = value;
  const std::string data(reinterpret_cast<const char*>(values.data()),
                         values.size() * sizeof(float));
  CallFile()
      .fact("layer", "2")
      .fact("q_state", "final")
      .tensor("q", "F32", {1, 2, 6, 4}, data)
      .tensor("k", "F32", {1, 2, 6, 4}, data)
      .write(path);
  return path;
}

}  // namespace

TEST_CASE("errors of the command line are JSON with --json") {
  const std::string capture = sample("moving-shapes");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"stats", capture, "--no-such"},
                                             {"stats", capture, "--layers", "x"},
                                             {"stats", capture, "--layers", "99"},
                                             {"stats", capture, "--sample", "0"},
                                             {"query"},
                                             {"statss", capture},
                                             {"stats", capture, "--where", "entropyy<2"},
                                             {"--no-such", "stats", capture}}) {
    INFO(words.front() << " " << words.back());
    const Json error = error_of(words, 2);
    CHECK(error.at("kind") == "usage");
    CHECK(error.at("file").is_null());
    CHECK(error.at("place").is_null());
  }
  // It is not the option where it stands behind "--".
  const auto behind = run_attnscope({"stats", capture, "--no-such", "--", "--json"});
  CHECK(behind.exit_code == 2);
  CHECK(behind.out.empty());
}

TEST_CASE("errors of files and values name the file and the place") {
  const TemporaryFolder folder;
  const Json missing = error_of({"stats", folder / "none"}, 1);
  CHECK(missing.at("kind") == "file");
  CHECK(missing.at("file") == (folder / "none"));

  const std::string call = write_call(folder / "call.safetensors", 0.5F);
  std::string bytes = read_file_text(call);
  write_bytes(folder / "cut.safetensors", bytes.substr(0, bytes.size() - 8));
  const Json cut = error_of({"stats", folder / "cut.safetensors"}, 1);
  CHECK(cut.at("kind") == "file");
  CHECK(has(cut.at("file"), "cut.safetensors"));

  write_bytes(folder / "list.json", R"({"heads":[{"layer":1}]})");
  const Json list = error_of({"stats", call, "--from", folder / "list.json"}, 1);
  CHECK(list.at("file") == (folder / "list.json"));
  CHECK(list.at("place") == "heads[0]");

  write_call(folder / "nan.safetensors", std::nanf(""));
  const Json value = error_of({"stats", folder / "nan.safetensors"}, 1);
  CHECK(value.at("kind") == "value");
  CHECK(has(value.at("file"), "nan.safetensors"));
  CHECK(value.at("place") == "batch 0, head 0, token 2, channel 1");

  const Json memory = error_of({"stats", call, "--memory", "1KiB"}, 1);
  CHECK(memory.at("kind") == "resource");
}

TEST_CASE("what another process finds in a file has its place as well") {
  const TemporaryFolder folder;
  const std::string maps = folder / "maps.h5";
  REQUIRE(run_attnscope(
              {"export", sample("moving-shapes"), "-o", maps, "--product", "lse", "--layers", "0"})
              .exit_code == 0);
  const std::string bytes = read_file_text(maps);
  write_bytes(maps, bytes.substr(0, bytes.size() / 3));
  const Json error = error_of({"info", maps}, 1);
  CHECK(error.at("kind") == "file");
  CHECK(error.at("file") == maps);
  const Json bad = error_of({"verify", maps}, 3);
  CHECK(bad.at("kind") == "verification");
  CHECK(bad.at("file") == maps);
}

TEST_CASE("a command that has printed its JSON prints no second one") {
  const TemporaryFolder folder;
  const std::string maps = folder / "maps.h5";
  REQUIRE(run_attnscope(
              {"export", sample("moving-shapes"), "-o", maps, "--layers", "0", "--heads", "0"})
              .exit_code == 0);
  std::string bytes = read_file_text(maps);
  for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 64; ++i) bytes[i] ^= 0x55;
  write_bytes(maps, bytes);
  const auto result = run_attnscope({"verify", maps, "--json"});
  INFO(result.err);
  CHECK(result.exit_code == 3);
  CHECK(Json::parse(result.out).at("format") == "attnscope-verify/1");
}
