#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program.h"
#include "tests/support/reference_call.h"

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

TEST_CASE("packed sequences of bare tensors are told by an option") {
  const TemporaryFolder folder;
  ReferenceCall call({1, 2, 2, 24, 24, 8}, 6);
  call.allowed([](int64_t q, int64_t k) { return sequence_of(q) == sequence_of(k); });
  call.write_packed(folder.path());
  write_bytes(folder / "cu.npy",
              npy_bytes("{'descr': '<i4', 'fortran_order': False, 'shape': (4,), }\n",
                        raw(std::vector<int32_t>{0, 9, 10, 24})));
  for (const std::string& told : {std::string("0,9,10,24"), folder / "cu.npy"}) {
    for (const int64_t query : {0, 8, 9, 10, 23}) {
      const std::string out = folder / "row.npy";
      const auto result =
          run_attnscope({"query", "--q", folder / "q.npy", "--k", folder / "k.npy", "--grid",
                         "1x4x6", "--cu-seqlens", told, "--index", std::to_string(query), "-o", out,
                         "--force", "--cache", "none"});
      INFO(told << ": " << result.err);
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
}

TEST_CASE("packed cross attention has boundaries of its own for the keys") {
  const TemporaryFolder folder;
  // Keys: 5, 10 and 15 of 30.
  const auto key_sequence = [](int64_t key) { return key < 5 ? 0 : key < 15 ? 1 : 2; };
  ReferenceCall call({1, 2, 1, 24, 30, 8}, 7);
  call.allowed([&](int64_t q, int64_t k) { return sequence_of(q) == key_sequence(k); });
  call.write_packed(folder.path());
  const std::string out = folder / "maps.h5";
  const std::vector<std::string> input{
      "--q", folder / "q.npy", "--k",      folder / "k.npy", "--layout",
      "shd", "--cu-seqlens",   "0,9,10,24"};
  std::vector<std::string> arguments{"export"};
  arguments.insert(arguments.end(), input.begin(), input.end());
  auto without = arguments;
  without.insert(without.end(), {"-o", out});
  const auto refused = run_attnscope(without);
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("--cu-seqlens: ends at 24 of 30 keys (by the layout ") !=
        std::string::npos);
  arguments.insert(arguments.end(),
                   {"--cu-seqlens-k", "0,5,15,30", "--dtype", "f32", "-o", out, "--no-sync"});
  const auto result = run_attnscope(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const DatasetValues weights = read_dataset(out, "/calls/step0000_layer000_all_cross/weights");
  std::vector<double> expected;
  for (const int64_t head : {0, 1}) {
    for (int64_t query = 0; query < 24; ++query) {
      const std::vector<double> row = call.row(0, head, query);
      expected.insert(expected.end(), row.begin(), row.end());
    }
  }
  const std::vector<float> values(weights.values.begin(), weights.values.end());
  CHECK(worst_error(values, expected, 1e-6) < 1e-4);
}

TEST_CASE("boundaries in an option that do not fit are a usage error") {
  const TemporaryFolder folder;
  ReferenceCall({1, 2, 2, 24, 24, 8}, 6).write_packed(folder.path());
  write_bytes(folder / "f.npy",
              npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n",
                        raw(std::vector<float>{0, 24})));
  const auto run = [&](std::vector<std::string> options) {
    std::vector<std::string> arguments{"info",     "--q", folder / "q.npy", "--k", folder / "k.npy",
                                       "--layout", "shd"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_attnscope(arguments);
  };
  struct Case {
    std::vector<std::string> options;
    int exit_code;
    std::string part;
  };
  const std::vector<Case> cases{
      {{"--cu-seqlens", "1,24"}, 2, "--cu-seqlens: does not begin with 0 (got 1)"},
      {{"--cu-seqlens", "0,9,5,24"}, 2, "--cu-seqlens: runs backwards at 2 (got 5 after 9)"},
      {{"--cu-seqlens", "0,23"}, 2, "--cu-seqlens: ends at 23 of 24 queries (by the layout shd)"},
      {{"--cu-seqlens", "0,9.5,24"}, 2, "--cu-seqlens 0,9.5,24: neither a list"},
      {{"--cu-seqlens", "0,-9,24"}, 2, "\"-9\" is no whole number"},
      {{"--cu-seqlens", "0,,24"}, 2, "\"\" is no whole number"},
      {{"--cu-seqlens", "nothing.npy"}, 2, "neither a list such as 0,9,24 nor a file"},
      {{"--cu-seqlens", folder / "f.npy"}, 1, "expected int32 or int64 [sequences + 1] (got f32"},
      {{"--cu-seqlens", "0,9,24", "--cu-seqlens-k", "0,24"},
       2,
       "--cu-seqlens-k: has another number of sequences (got 1, expected 2)"},
      {{"--cu-seqlens-k", "0,24"}, 2, "--cu-seqlens-k needs --cu-seqlens"},
  };
  for (const Case& c : cases) {
    const auto result = run(c.options);
    INFO(c.options[1] << ": " << result.err);
    CHECK(result.exit_code == c.exit_code);
    CHECK(result.err.find(c.part) != std::string::npos);
  }
  const auto pasted = run({"--cu-seqlens", "0,9,24"});
  CHECK(pasted.exit_code == 0);
  CHECK(pasted.out.find(" --cu-seqlens 0,9,24") != std::string::npos);
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
  CHECK(error({0, 9, 23}).find("ends at 23 of 24 queries (by the layout bhsd)") !=
        std::string::npos);
  CHECK(error({0, 24}, 2).find("one batch item") != std::string::npos);
}
