#include "tests/catch.h"
#include "tests/cli/program.h"
#include "tests/cli/reference_call.h"

using namespace attnscope::test;

namespace {

/// Three sequences of 9, 1 and 14 tokens.
constexpr int64_t kStarts[] = {0, 9, 10, 24};

int64_t sequence_of(int64_t token) { return token < 9 ? 0 : token < 10 ? 1 : 2; }

std::string boundaries(std::vector<int64_t> values) { return raw(values); }

}  // namespace

TEST_CASE("packed sequences attend to themselves only") {
  const TemporaryFolder folder;
  const std::string path = folder / "packed.safetensors";
  ReferenceCall call({1, 2, 2, 24, 24, 8}, 5);
  call.allowed([](int64_t q, int64_t k) { return sequence_of(q) == sequence_of(k); });
  call.tensor("cu_seqlens", "I64", {4}, boundaries({kStarts, kStarts + 4}));
  call.fact("grid", "1x4x6").write(path);
  for (const int64_t query : {0, 8, 9, 10, 23}) {
    const std::string out = folder / "row.npy";
    const auto result = run_attnscope(
        {"query", path, "--index", std::to_string(query), "-o", out, "--force", "--cache", "none"});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    CHECK(result.err.find("3 packed sequences") != std::string::npos);
    const NpyArray array = read_npy(out);
    REQUIRE(array.shape == std::vector<int64_t>{2, 1, 4, 6});
    std::vector<double> expected = call.row(0, 0, query);
    const std::vector<double> second = call.row(0, 1, query);
    expected.insert(expected.end(), second.begin(), second.end());
    CHECK(worst_error(array.values, expected, 1e-6) < 1e-4);
  }
}

TEST_CASE("boundaries that do not fit are an error") {
  const TemporaryFolder folder;
  const std::string path = folder / "packed.safetensors";
  const auto error = [&](std::vector<int64_t> values, int64_t batch = 1) {
    ReferenceCall call({batch, 2, 2, 24, 24, 8}, 5);
    const auto count = static_cast<int64_t>(values.size());
    call.tensor("cu_seqlens", "I64", {count}, boundaries(std::move(values))).write(path);
    const auto result = run_attnscope({"info", path});
    CHECK(result.exit_code == 1);
    return result.err;
  };
  CHECK(error({1, 24}).find("does not begin with 0") != std::string::npos);
  CHECK(error({0, 9, 5, 24}).find("runs backwards at 2") != std::string::npos);
  CHECK(error({0, 9, 23}).find("(got 23, expected 24)") != std::string::npos);
  CHECK(error({0, 24}, 2).find("one batch item") != std::string::npos);
}
