#include "tests/cli/common/fault_settings.h"
#include "tests/cli/query/query_reference.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/helpers.h"
#include "tests/support/program.h"
#include "tests/support/skip.h"
#include "tests/support/synthetic.h"

using namespace attnscope::test;

namespace {

constexpr double kTolerance = 2e-4;

struct Case {
  std::vector<std::string> options;
  Keys keys;
  std::vector<std::string> domains;
};

/// Keys of a joint call whose video starts at `v` and whose text starts at `t`.
std::vector<Case> joint_cases(int64_t v, int64_t t) {
  return {
      {{"--query", "1,2,3"}, {{v + 33, 1.0}}, {"all", "video", "frame"}},
      // A box is averaged over its keys.
      {{"--query", "2,0:2,4"}, {{v + 44, 0.5}, {v + 49, 0.5}}, {"all", "video", "frame"}},
      // Keys of several frames, each with its own frame's sums.
      {{"--query", "0:3,3,0"},
       {{v + 15, 1 / 3.0}, {v + 35, 1 / 3.0}, {v + 55, 1 / 3.0}},
       {"all", "frame"}},
      {{"--text-token", "a"}, {{t, 1.0}}, {"all", "text"}},
      // The pieces of a word are added up; words are averaged.
      {{"--text-token", "dragon"}, {{t + 1, 1.0}, {t + 2, 1.0}}, {"all", "text"}},
      // A run is of single tokens, also where they are the pieces of a word.
      {{"--text-token", "1-2"}, {{t + 1, 0.5}, {t + 2, 0.5}}, {"all", "text"}},
      {{"--text-token", "1-3", "--text-token", "2"},
       {{t + 1, 1 / 3.0}, {t + 2, 1 / 3.0}, {t + 3, 1 / 3.0}},
       {"all", "text"}},
      {{"--text-token", "dragon", "--text-token", "3"},
       {{t + 1, 0.5}, {t + 2, 0.5}, {t + 3, 0.5}},
       {"all", "text"}},
      {{"--index", std::to_string(t + 2), "--query", "0,0,0"}, {{t + 2, 0.5}, {v, 0.5}}, {"all"}},
  };
}

void check_cases(const ReferenceCall& call, const std::string& path, const std::string& place,
                 const TemporaryFolder& folder, const std::string& mask = "") {
  const int64_t video = place == "start" ? 4 : 0;
  const int64_t text = place == "start" ? 0 : 60;
  for (const Case& c : joint_cases(video, text)) {
    for (const std::string& domain : c.domains) {
      std::vector<std::string> arguments{path, "--reverse", "--domain", domain};
      arguments.insert(arguments.end(), c.options.begin(), c.options.end());
      if (!mask.empty()) arguments.insert(arguments.end(), {"--mask", mask});
      INFO(c.options[0] << " " << c.options[1] << " domain " << domain << " text at " << place);
      const auto values = query_npy(arguments, folder);
      const auto expected = columns(call, c.keys, domain, video, 60);
      CHECK(worst_error(values, expected, 1e-3 / 64) < kTolerance);
    }
  }
}

}  // namespace

TEST_CASE("who attends to a key, in every domain, with grouped queries") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  for (const std::string place : {"start", "end"}) {
    const ReferenceCall call = joint_call(place, 11);
    call.write(path);
    check_cases(call, path, place, folder);
  }
}

TEST_CASE("who attends to a key under causal, windowed and tensor masks") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  ReferenceCall causal = joint_call("start", 12);
  causal.fact("mask", "causal").write(path);
  check_cases(causal, path, "start", folder);
  ReferenceCall window = joint_call("start", 13);
  window.allowed([](int64_t i, int64_t j) { return std::abs(i - j) <= 30; });
  window.write(path);
  check_cases(window, path, "start", folder, "window:30");
  ReferenceCall tensor = joint_call("end", 14);
  std::string bits;
  const auto kept = [](int64_t i, int64_t j) { return (i * 7 + j * 3) % 5 != 0 && i % 9 != 0; };
  for (int64_t i = 0; i < 64; ++i) {
    for (int64_t j = 0; j < 64; ++j) bits += kept(i, j) ? '\1' : '\0';
  }
  tensor.tensor("mask", "BOOL", {64, 64}, bits).fact("mask", "tensor").allowed(kept);
  tensor.write(path);
  check_cases(tensor, path, "end", folder);
}

TEST_CASE("which video tokens attend to a word of cross attention") {
  const TemporaryFolder folder;
  const std::string path = folder / "cross.safetensors";
  ReferenceCall call({1, 2, 1, 60, 7, 8}, 15);
  call.fact("grid", "3x4x5").fact("tokens", R"(["red","dog","ran","away","","",""])");
  call.write(path);
  for (const std::string domain : {"all", "text"}) {
    const auto values =
        query_npy({path, "--reverse", "--text-token", "dog", "--domain", domain}, folder);
    std::vector<double> expected;
    for (int64_t head = 0; head < 2; ++head) {
      for (int64_t i = 0; i < 60; ++i) expected.push_back(call.row(0, head, i)[1]);
    }
    CHECK(worst_error(values, expected, 1e-3 / 7) < kTolerance);
  }
  const auto no_grid = run_attnscope({"query", path, "--reverse", "--query", "0,0,0"});
  CHECK(no_grid.exit_code == 2);
  CHECK(contains(no_grid.err, "is text; give --text-token"));
  const auto picture = run_attnscope({"query", path, "--reverse", "--text-token", "1", "--quiet",
                                      "--cache", "none", "-o", folder / "dog.png"});
  INFO(picture.err);
  CHECK(picture.exit_code == 0);
}

TEST_CASE("a key outside the domain is refused") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  joint_call("start", 16).write(path);
  const std::vector<std::vector<std::string>> cases{{"--query", "0,0,0", "--domain", "text"},
                                                    {"--text-token", "0", "--domain", "video"},
                                                    {"--text-token", "0", "--domain", "frame"}};
  for (auto arguments : cases) {
    arguments.insert(arguments.begin(), {"query", path, "--reverse"});
    const auto result = run_attnscope(arguments);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, "choose keys of the domain"));
  }
}

TEST_CASE("reversed weights are the bits of the export, whatever memory and threads") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  std::vector<std::string> backends{"cpu"};
  // In plain loops, which sanitizers see in the tests of kernels, it would take minutes.
  if (!sanitized()) backends.push_back("reference");
  for (const std::string& backend : backends) {
    const std::vector<std::string> common{"--layers",  "1",     "--heads", "1-2",
                                          "--backend", backend, "--quiet"};
    std::vector<std::string> arguments{"export",  capture,    "-o",      folder / "map.h5",
                                       "--dtype", "f32",      "--force", "--cols",
                                       "500:503", "--no-sync"};
    arguments.insert(arguments.end(), common.begin(), common.end());
    REQUIRE(run_attnscope(arguments).exit_code == 0);
    const auto map = read_dataset(folder / "map.h5", "/calls/step0010_layer001_cond_joint/weights");
    REQUIRE(map.shape == std::vector<int64_t>{1, 2, 1024, 3});
    for (const std::vector<std::string>& how :
         {std::vector<std::string>{}, {"--threads", "1"}, {"--memory", "2MiB"}}) {
      arguments = {capture, "--reverse", "--index", "501"};
      arguments.insert(arguments.end(), common.begin(), common.end() - 1);
      arguments.insert(arguments.end(), how.begin(), how.end());
      const auto values = query_npy(arguments, folder);
      REQUIRE(values.size() == 2 * 1008);
      size_t different = 0;
      for (size_t head = 0; head < 2; ++head) {
        for (size_t i = 0; i < 1008; ++i) {
          const auto expected = map.values[(head * 1024 + i + 16) * 3 + 1];
          if (static_cast<float>(expected) != values[head * 1008 + i]) ++different;
        }
      }
      CHECK(different == 0);
    }
  }
}

TEST_CASE("reversed scores without norms agree with the rows") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  joint_call("start", 17).write(path);
  for (const std::string score : {"sigmoid", "linear:elu1"}) {
    for (const std::string domain : {"all", "video", "frame"}) {
      const auto column = query_npy({path, "--reverse", "--query", "1,2,3", "--heads", "1",
                                     "--domain", domain, "--score", score},
                                    folder);
      REQUIRE(column.size() == 60);
      for (const int64_t query : {0, 17, 33, 59}) {
        const auto row = query_npy({path, "--index", std::to_string(query + 4), "--heads", "1",
                                    "--domain", domain, "--score", score},
                                   folder);
        INFO(score << " " << domain << " " << query);
        CHECK(row[33] > 1e-6);
        CHECK(column[static_cast<size_t>(query)] == Approx(row[33]).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("keys far apart and very many keys are averaged like few", "[numbers]") {
  const TemporaryFolder folder;
  const std::string head = folder / "head.safetensors";
  write_synthetic_head(head, 6000, 8);
  const auto reversed = [&](std::vector<std::string> keys) {
    keys.insert(keys.begin(), {head, "--grid", "60x10x10", "--reverse"});
    return query_npy(keys, folder);
  };
  const std::vector<std::vector<float>> single{
      reversed({"--index", "3"}), reversed({"--index", "2500"}), reversed({"--query", "59,9,9"})};
  std::vector<double> expected(6000, 0.0);
  for (const auto& column : single) {
    REQUIRE(column.size() == 6000);
    for (size_t i = 0; i < 6000; ++i) expected[i] += column[i] / 3.0;
  }
  const auto mean = reversed({"--index", "3", "--index", "2500", "--query", "59,9,9"});
  CHECK(worst_error(mean, expected, 1e-9) < 1e-6);
  // Every row adds up to 1.
  const auto all = reversed({"--query", "0:60,0:10,0:10"});
  CHECK(worst_error(all, std::vector<double>(6000, 1.0 / 6000), 0) < 1e-5);
}

TEST_CASE("a reversed query of a long sequence keeps to its budget") {
  if (sanitized()) {
    skip_test("a sanitizer inflates memory");
    return;
  }
  const TemporaryFolder folder;
  const std::string head = folder / "head.safetensors";
  write_synthetic_head(head, 119056, 128);
  // A whole frame of keys: 1.7 GB of weights.
  const auto result = run_attnscope({"query", head, "--grid", "33x45x80", "--text", "256@end",
                                     "--reverse", "--query", "16,0:45,0:80", "--domain", "frame",
                                     "--memory", "128MiB", "-o", folder / "out.npy", "--quiet"});
  INFO("peak " << (result.peak_bytes >> 20) << " MiB\n" << result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.peak_bytes <= int64_t{192} << 20);
  // Rows over a frame add up to 1, so that their mean over its keys is known.
  const NpyArray volume = read_npy(folder / "out.npy");
  CHECK(worst_error(volume.values, std::vector<double>(118800, 1.0 / 3600), 0) < 1e-5);
}

TEST_CASE("an interrupted reversed query leaves nothing") {
  const TemporaryFolder folder;
  write_synthetic_head(folder / "head.safetensors", 800, 16);
  const TemporaryFolder elsewhere;
  std::vector<std::string> arguments{"query",     folder / "head.safetensors",
                                     "--reverse", "--index",
                                     "5",         "--backend",
                                     "reference", "--quiet",
                                     "-o"};
  auto whole = arguments;
  whole.insert(whole.end(), {elsewhere / "out.csv", "--cache", "none"});
  arguments.push_back(folder / "out.csv");
  const long reads = calls_of(whole, "stop-read");
  const auto result = run_attnscope(arguments, with_fault("stop-read", reads / 2));
  INFO(result.err);
  CHECK(result.exit_code == 4);
  size_t files = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator(folder.path())) ++files;
  CHECK(files == 1);
}
