// Tables that stats makes of all heads together: the curve of keys, classes over steps, nearest
// heads.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/files/json_types.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program.h"
#include "tests/support/program_heads.h"
#include "tests/support/reference_call.h"
#include "tests/support/synthetic.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

Json answer_of(const std::vector<std::string>& words) {
  const auto result = run_attnscope(words);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out);
}

/// A call of zeros, whose rows are uniform: a head of few keys is a sink, one of many is global.
void write_uniform(const TemporaryFolder& folder, const std::string& step,
                   const std::string& branch, int64_t keys) {
  CallFile()
      .pair({1, 2, keys, 8}, {1, 2, keys, 8})
      .fact("layer", "3")
      .fact("step", step)
      .fact("branches", "[\"" + branch + "\"]")
      .write(folder / (branch + step + ".safetensors"));
}

using Rows = std::vector<std::vector<double>>;

/// By the definition: rows that stand for all, their keys added up in runs.
Rows pooled_rows(const ReferenceCall& call, int64_t head) {
  const int64_t queries = call.shape().queries, keys = call.shape().keys;
  const int64_t taken = std::min<int64_t>(queries, 64), width = (keys + 63) / 64;
  Rows rows;
  for (int64_t i = 0; i < taken; ++i) {
    const std::vector<double> row = call.row(0, head, (2 * i + 1) * queries / (2 * taken));
    std::vector<double>& cells = rows.emplace_back(static_cast<size_t>((keys + width - 1) / width));
    for (int64_t key = 0; key < keys; ++key) {
      cells[static_cast<size_t>(key / width)] += row[static_cast<size_t>(key)];
    }
  }
  return rows;
}

double divergence(const Rows& a, const Rows& b) {
  double sum = 0;
  for (size_t r = 0; r < a.size(); ++r) {
    for (size_t c = 0; c < a[r].size(); ++c) {
      const double x = a[r][c], y = b[r][c], middle = (x + y) / 2;
      if (x > 0) sum += x * std::log2(x / middle) / 2;
      if (y > 0) sum += y * std::log2(y / middle) / 2;
    }
  }
  return sum / static_cast<double>(a.size());
}

}  // namespace

TEST_CASE("the curve of keys is what sorted rows add up to in double", "[numbers]") {
  const TemporaryFolder folder;
  const ReferenceCall call({1, 2, 1, 90, 70, 16}, 11);
  call.write(folder / "call.safetensors");
  const std::vector<double> shares{0.5, 0.8, 0.9, 0.95, 0.99};
  const std::vector<std::string> names{"keys_for_50", "keys_for_80", "keys_for_90", "keys_for_95",
                                       "keys_for_99"};
  const Json stats = answer_of({"stats", folder / "call.safetensors", "--curve", "--json"});
  run_well({"stats", folder / "call.safetensors", "-o", folder / "s.h5", "--curve", "--quiet"});
  const Json plain = answer_of({"stats", folder / "call.safetensors", "--json"});
  for (size_t h = 0; h < 2; ++h) {
    const Json& head = stats["heads"][h];
    CHECK(head["keys_curve"]["mass"] == Json(shares));
    CHECK_FALSE(plain["heads"][h].contains("keys_curve"));
    for (size_t i = 0; i < shares.size(); ++i) {
      INFO("head " << h << " " << names[i]);
      int64_t count = 0;
      for (int64_t row = 0; row < 90; ++row) {
        std::vector<double> weights = call.row(0, static_cast<int64_t>(h), row);
        std::sort(weights.begin(), weights.end(), std::greater<>());
        double sum = 0;
        for (size_t key = 0; sum < shares[i]; ++key, ++count) sum += weights[key];
      }
      // No row's sum comes within rounding of a share, so that all rows count alike.
      CHECK(std::abs(head["keys_curve"]["keys"][i].get<double>() -
                     static_cast<double>(count) / 90) < 1e-6);
      CHECK(head[names[i]] == head["keys_curve"]["keys"][i]);
      CHECK(plain["heads"][h][names[i]] == head[names[i]]);
      CHECK(read_dataset(folder / "s.h5", "/calls/step0000_layer000_all_cross/" + names[i])
                .values[h] == head[names[i]].get<double>());
    }
  }
  const std::string printed =
      run_attnscope({"stats", folder / "call.safetensors", "--curve", "--quiet"}).out;
  CHECK(printed.find("keys 50% keys 80% keys 90% keys 95% keys 99%") != std::string::npos);
}

TEST_CASE("classes over steps and branches are a table of their own") {
  const TemporaryFolder folder, out;
  write_uniform(folder, "0", "cond", 8);
  write_uniform(folder, "9", "cond", 40);
  write_uniform(folder, "0", "uncond", 8);
  const std::string capture = folder / ".";
  const Json table = answer_of({"stats", capture, "--json"}).at("class_table");
  const Json columns = Json::parse(R"([{"step": 0, "branch": "cond"}, {"step": 9, "branch": "cond"},
                                       {"step": 0, "branch": "uncond"}])");
  CHECK(table["columns"] == columns);
  REQUIRE(table["heads"].size() == 2);
  CHECK(table["heads"][1]["layer"] == 3);
  CHECK(table["heads"][1]["head"] == 1);
  CHECK(table["heads"][1]["changes"] == true);
  CHECK(table["heads"][1]["classes"] == Json({"sink", "global", "sink"}));
  const std::string printed = run_attnscope({"stats", capture, "--quiet"}).out;
  CHECK(printed.find("cond 0    cond 9    uncond 0") != std::string::npos);
  CHECK(printed.find("1 * sink      global    sink") != std::string::npos);
  CHECK(printed.find("2 of 2 heads changed class\n") != std::string::npos);
  // Of the first of sorted heads cells would be empty that were measured.
  const std::vector<std::string> top{"stats", capture, "--sort", "entropy", "--top", "3"};
  CHECK(run_attnscope(top).out.find("changed class") == std::string::npos);
  CHECK_FALSE(answer_of({"stats", capture, "--sort", "entropy", "--top", "3", "--json"})
                  .contains("class_table"));
  // Of what is left there is none, or nothing changes.
  CHECK_FALSE(answer_of({"stats", capture, "--steps", "9", "--json"}).contains("class_table"));
  CHECK(answer_of({"stats", capture, "--steps", "0",
                   "--json"})["class_table"]["heads"][0]["changes"] == false);
  // Parts have theirs; the whole's is made anew.
  run_well({"stats", capture, "--curve", "-o", out / "one.json", "--quiet"});
  for (const std::string part : {"0/2", "1/2"}) {
    for (const std::string end : {".json", ".h5"}) {
      run_well({"stats", capture, "--curve", "-o", out / ("p-{shard}" + end), "--shard", part,
                "--quiet"});
    }
  }
  for (const std::string end : {".json", ".h5"}) {
    run_well({"merge", out / ("p-0-of-2" + end), out / ("p-1-of-2" + end), "-o",
              out / ("whole" + end + ".json"), "--quiet"});
    CHECK(read_file(out / ("whole" + end + ".json")) == read_file(out / "one.json"));
  }
  // --curve makes no other run.
  run_well({"stats", capture, "--curve", "-o", out / "one.json", "--resume", "--quiet"});
  run_well({"stats", capture, "-o", out / "one.json", "--resume", "--quiet"});
  run_well({"stats", capture, "-o", out / "one.h5", "--quiet"});
  run_well({"stats", capture, "--curve", "-o", out / "one.h5", "--resume", "--quiet"});
}

TEST_CASE("the nearest heads are those of the smallest divergence between pooled rows",
          "[numbers]") {
  const TemporaryFolder folder;
  const ReferenceCall call({1, 6, 6, 90, 150, 16}, 3);
  call.write(folder / "call.safetensors");
  const std::string path = folder / "call.safetensors";
  const Json stats = answer_of({"stats", path, "--nearest", "3", "--json"});
  std::vector<Rows> heads;
  for (int64_t h = 0; h < 6; ++h) heads.push_back(pooled_rows(call, h));
  for (size_t h = 0; h < 6; ++h) {
    INFO("head " << h);
    std::vector<std::pair<double, size_t>> expected;
    for (size_t other = 0; other < 6; ++other) {
      if (other != h) expected.emplace_back(divergence(heads[h], heads[other]), other);
    }
    std::sort(expected.begin(), expected.end());
    const Json& near = stats["heads"][h]["nearest"];
    REQUIRE(near.size() == 3);
    for (size_t i = 0; i < 3; ++i) {
      CHECK(near[i]["head"] == expected[i].second);
      CHECK(near[i]["layer"] == stats["heads"][h]["layer"]);
      CHECK(std::abs(near[i]["js"].get<double>() - expected[i].first) < 1e-6);
    }
  }
  // As many as there are; threads and memory change nothing.
  CHECK(answer_of({"stats", path, "--nearest", "9", "--json"})["heads"][0]["nearest"].size() == 5);
  const Json few =
      answer_of({"stats", path, "--nearest", "3", "--threads", "1", "--memory", "8MiB", "--json"});
  CHECK(few["heads"] == stats["heads"]);
  CHECK_FALSE(answer_of({"stats", path, "--json"})["heads"][0].contains("nearest"));
  run_well({"stats", path, "--nearest", "2", "-o", folder / "n.csv", "--quiet"});
  CHECK(read_file(folder / "n.csv").find(",nearest\r\n") != std::string::npos);
  // What reads tables passes over the column.
  CHECK(answer_of({"stats", path, "--from", folder / "n.csv", "--json"})["heads"].size() == 6);
  CHECK(answer_of({"diff", folder / "n.csv", folder / "n.csv", "--json"})["pairs"].size() == 6);
  run_well({"stats", path, "--nearest", "3", "-o", folder / "n.json", "--quiet"});
  CHECK(Json::parse(read_file(folder / "n.json"))["heads"] == stats["heads"]);
  run_well({"stats", path, "--nearest", "3", "-o", folder / "n.json", "--resume", "--quiet"});
}

TEST_CASE("nearest heads are of one step and branch, and need all heads") {
  const TemporaryFolder folder, out;
  write_uniform(folder, "0", "cond", 40);
  write_uniform(folder, "9", "cond", 40);
  const Json heads = answer_of({"stats", folder / ".", "--nearest", "4", "--json"})["heads"];
  for (const Json& head : heads) {
    REQUIRE(head["nearest"].size() == 1);
    CHECK(head["nearest"][0]["step"] == head["step"]);
    CHECK(head["nearest"][0]["head"] == 1 - head["head"].get<int64_t>());
    CHECK(head["nearest"][0]["js"] == 0);
  }
  const std::string text = run_attnscope({"stats", folder / ".", "--nearest", "1"}).out;
  CHECK(text.find("nearest (bits)") != std::string::npos);
  CHECK(text.find(" 3.1 0.000\n") != std::string::npos);
  // Sigmoid rows are no distributions.
  CHECK_FALSE(answer_of({"stats", folder / ".", "--nearest", "1", "--score", "sigmoid",
                         "--json"})["heads"][0]
                  .contains("nearest"));
  const auto sigmoid = run_attnscope(
      {"stats", folder / ".", "--nearest", "1", "--score", "sigmoid", "-o", out / "sigmoid.csv"});
  CHECK(sigmoid.err.find("4 of 4 heads have no other head to compare with") != std::string::npos);
  CHECK(read_file(out / "sigmoid.csv").find(",nearest\r\n") != std::string::npos);
  const auto alone = run_attnscope({"stats", folder / ".", "--nearest", "1", "--heads", "0"});
  CHECK(alone.out.find("nearest (bits)") != std::string::npos);
  CHECK(alone.err.find("--nearest: 2 of 2 heads have no") != std::string::npos);
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"-o", folder / "x.h5"},
                                                {"--shard", "0/2", "-o", "x-{shard}.json"}}) {
    std::vector<std::string> words{"stats", folder / ".", "--nearest", "1"};
    words.insert(words.end(), wrong.begin(), wrong.end());
    const auto result = run_attnscope(words);
    CHECK(result.exit_code == 2);
    CHECK(result.err.find("--nearest") != std::string::npos);
  }
}

TEST_CASE("nearest heads are of one chunk and forward, and their slot is named") {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& fact, const std::string& value,
                         const std::string& slot) {
    CallFile()
        .pair({1, 2, 40, 8}, {1, 2, 40, 8})
        .version(2)
        .fact("kind", "self")
        .fact("layer", "3")
        .fact("block", "blocks.3")
        .fact("slot", slot)
        .fact(fact, value)
        .write(folder / (name + ".safetensors"));
  };
  write("a", "chunk", "0", "attn1");
  write("b", "chunk", "1", "attn1");
  write("c", "chunk", "1", "attn2");
  const auto text = run_attnscope({"stats", folder / ".", "--nearest", "9", "--quiet"}).out;
  CHECK(text.find(" 3.attn1.1 0.000\n") != std::string::npos);
  CHECK(text.find(", 3.attn2.0 0.000, 3.attn2.1 0.000\n") != std::string::npos);
  const Json heads = answer_of({"stats", folder / ".", "--nearest", "9", "--json"})["heads"];
  REQUIRE(heads.size() == 6);
  for (const Json& head : heads) {
    CHECK(head["nearest"].size() == (head["chunk"] == 0 ? 1 : 3));
    for (const Json& near : head["nearest"]) CHECK(near["chunk"] == head["chunk"]);
  }
}

TEST_CASE("memory that the nearest heads lack is refused before the first head") {
  const TemporaryFolder folder;
  const std::string path = folder / "many.safetensors", out = folder / "many.json";
  ReferenceCall({1, 128, 128, 64, 64, 8}, 5).write(path);
  const std::vector<std::string> plain{"stats", path, "--memory", "1600KiB", "-o", out};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = plain;
    words.insert(words.end(), more.begin(), more.end());
    return run_attnscope(words);
  };
  CHECK(with({"--dry-run"}).exit_code == 0);
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--nearest", "2", "--dry-run"}, {"--nearest", "2"}}) {
    const auto result = with(more);
    INFO(result.err);
    CHECK(result.exit_code == 1);
    CHECK(result.err.find("the maps of --nearest") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(out + ".part"));
  }
}
