#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/files/json_types.h"
#include "tests/support/answers.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ReferenceCall call_of(uint64_t seed, int64_t tokens = 90) {
  ReferenceCall call({1, 3, 1, tokens, tokens, 16}, seed);
  return call.fact("step", "4").fact("layer", "2");
}

Json run_json(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--json", "--quiet"});
  const auto result = run_attnscope(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out);
}

struct Expected {
  double mean_abs = 0, max_abs = 0, js_mean = 0, js_max = 0, cosine = 0, entropy_change = 0;
  int64_t js_query = 0;
};

/// In double, from the maps of the definition.
Expected expected_of(const ReferenceCall& a, int64_t head_a, const ReferenceCall& b, int64_t head_b,
                     int64_t tokens = 90) {
  Expected e;
  for (int64_t i = 0; i < tokens; ++i) {
    const std::vector<double> p = a.row(0, head_a, i), q = b.row(0, head_b, i);
    double js = 0, pq = 0, pp = 0, qq = 0;
    for (size_t j = 0; j < p.size(); ++j) {
      const double m = (p[j] + q[j]) / 2;
      e.mean_abs += std::abs(p[j] - q[j]);
      e.max_abs = std::max(e.max_abs, std::abs(p[j] - q[j]));
      if (p[j] > 0) js += p[j] * std::log2(p[j] / m) / 2;
      if (q[j] > 0) js += q[j] * std::log2(q[j] / m) / 2;
      if (p[j] > 0) e.entropy_change -= p[j] * std::log(p[j]) / static_cast<double>(tokens);
      if (q[j] > 0) e.entropy_change += q[j] * std::log(q[j]) / static_cast<double>(tokens);
      pq += p[j] * q[j];
      pp += p[j] * p[j];
      qq += q[j] * q[j];
    }
    e.cosine += pq / std::sqrt(pp * qq) / static_cast<double>(tokens);
    e.js_mean += js / static_cast<double>(tokens);
    if (js > e.js_max) e.js_query = i;
    e.js_max = std::max(e.js_max, js);
  }
  e.mean_abs /= static_cast<double>(tokens * tokens);
  return e;
}

void check_close(const Json& pair, const Expected& e) {
  CHECK(e.js_max > 0.01);
  CHECK(pair["mean_abs"].get<double>() == Approx(e.mean_abs).epsilon(1e-4));
  CHECK(pair["max_abs"].get<double>() == Approx(e.max_abs).epsilon(1e-4));
  CHECK(pair["js_mean"].get<double>() == Approx(e.js_mean).epsilon(1e-4));
  CHECK(pair["js_max"].get<double>() == Approx(e.js_max).epsilon(1e-4));
  CHECK(pair["cosine"].get<double>() == Approx(e.cosine).epsilon(1e-5));
  CHECK(pair["entropy_change"].get<double>() == Approx(e.entropy_change).margin(1e-4));
  CHECK(pair["js_query"].get<int64_t>() == e.js_query);
  CHECK(pair["top"][0]["query"] == pair["js_query"]);
}

}  // namespace

TEST_CASE("two captures are compared head by head, as in double") {
  const TemporaryFolder folder;
  const ReferenceCall a = call_of(1), b = call_of(2);
  a.write(folder.path() / "a.safetensors");
  b.write(folder.path() / "b.safetensors");
  const Json all = run_json({"diff", folder / "a.safetensors", folder / "b.safetensors"});
  CHECK(all["format"] == "attnscope-diff/1");
  CHECK(all["a"] == "a.safetensors");
  REQUIRE(all["pairs"].size() == 3);
  for (int64_t head = 0; head < 3; ++head) {
    const Json& pair = all["pairs"][static_cast<size_t>(head)];
    CHECK(pair["a"]["head"] == head);
    CHECK(pair["b"]["head"] == head);
    check_close(pair, expected_of(a, head, b, head));
  }
  // Heads of one capture, in little memory, to the same bits as with two threads.
  const Json own = run_json({"diff", folder / "a.safetensors", "--heads", "0", "--b-head", "2"});
  check_close(own["pairs"][0], expected_of(a, 0, a, 2));
  CHECK(own == run_json({"diff", folder / "a.safetensors", "--heads", "0", "--b-head", "2",
                         "--memory", "2MiB", "--threads", "1"}));
  const Json some = run_json(
      {"diff", folder / "a.safetensors", "--heads", "0", "--b-head", "2", "--sample", "10"});
  CHECK(some["pairs"][0]["rows"] == 10);
  CHECK(some["pairs"][0]["rows_of"] == 90);
  CHECK(some["pairs"][0]["js_max"] <= own["pairs"][0]["js_max"]);
}

TEST_CASE("files hold what is printed") {
  const TemporaryFolder folder;
  call_of(1).write(folder.path() / "a.safetensors");
  const std::vector<std::string> run{
      "diff", folder / "a.safetensors", "--heads", "0,1", "--b-head", "2", "--quiet"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = run;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_attnscope(arguments);
  };
  const Json printed = Json::parse(with({"--json"}).out);
  REQUIRE(with({"-o", folder / "d.json"}).exit_code == 0);
  CHECK(OrderedJson::parse(read_file(folder / "d.json")) == answer_alone(with({"--json"}).out));
  REQUIRE(with({"-o", folder / "d.csv"}).exit_code == 0);
  std::istringstream lines(read_file(folder / "d.csv"));
  std::string names, first;
  std::getline(lines, names);
  std::getline(lines, first);
  CHECK(contains(names, "a_step,a_layer,a_branch"));
  CHECK(contains(names, ",js_mean,js_max,js_query,"));
  CHECK(contains(names, ",lse_query,cosine,entropy_change"));
  CHECK(contains(first, printed["pairs"][0]["js_mean"].dump()));
  REQUIRE(with({"-o", folder / "d.h5"}).exit_code == 0);
  CHECK(read_file(folder / "d.h5").substr(1, 3) == "HDF");
  // A file that exists is replaced with --force alone.
  const auto again = with({"-o", folder / "d.csv"});
  CHECK(again.exit_code == 1);
  CHECK(contains(again.err, "already exists"));
  CHECK(with({"-o", folder / "d.csv", "--force"}).exit_code == 0);
  CHECK(contains(with({"-o", folder / "d.txt"}).err, "must end in .json, .csv or .h5"));
  // Two pairs: a line each.
  CHECK(contains(with({}).out, "js_mean"));
  CHECK(contains(
      run_attnscope({"diff", folder / "a.safetensors", "--heads", "0", "--b-head", "2"}).out,
      "JS bits   mean"));
  CHECK(contains(with({"--dry-run"}).out, "expected time"));
}

TEST_CASE("several pairs are a line each, in the order of --sort") {
  const TemporaryFolder folder;
  const ReferenceCall a = call_of(1), b = call_of(2);
  a.write(folder.path() / "a.safetensors");
  b.write(folder.path() / "b.safetensors");
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"diff", folder / "a.safetensors", folder / "b.safetensors",
                                       "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_attnscope(arguments);
  };
  std::istringstream lines(with({"--sort", "js_mean:asc"}).out);
  std::string line;
  std::getline(lines, line);
  CHECK(contains(line, "total_variation   js_mean    js_max"));
  CHECK_FALSE(contains(line, "b_head"));
  // step layer branch kind b head mean_abs max_abs total_variation js_mean
  double before = 0;
  int64_t count = 0;
  for (; std::getline(lines, line); ++count) {
    std::istringstream words(line);
    std::vector<std::string> cells;
    for (std::string word; words >> word;) cells.push_back(word);
    REQUIRE(cells.size() == 15);
    const int64_t head = std::stoll(cells[5]);
    const Expected e = expected_of(a, head, b, head);
    CHECK(std::stod(cells[6]) == Approx(e.mean_abs).epsilon(1e-3));
    CHECK(std::stod(cells[9]) == Approx(e.js_mean).epsilon(1e-3));
    CHECK(cells[14] == std::to_string(e.js_query));
    CHECK(std::stod(cells[9]) >= before);
    before = std::stod(cells[9]);
  }
  CHECK(count == 3);
  const auto sorted = [&](const std::string& sort) {
    std::vector<double> numbers;
    const Json found = Json::parse(with({"--json", "--sort", sort}).out);
    for (const Json& pair : found["pairs"]) {
      numbers.push_back(pair["cosine"]);
    }
    return numbers;
  };
  std::vector<double> largest = sorted("cosine");
  CHECK(std::is_sorted(largest.rbegin(), largest.rend()));
  std::reverse(largest.begin(), largest.end());
  CHECK(sorted("cosine:asc") == largest);
  // Rows that differ most stand below each line where they are asked for.
  const std::string listed = with({"--top", "2"}).out;
  CHECK(std::count(listed.begin(), listed.end(), '\n') == 1 + 3 * (1 + 2));
  const auto other = run_attnscope(
      {"diff", folder / "a.safetensors", "--heads", "0,1", "--b-head", "2", "--sample", "10"});
  CHECK(contains(other.out, "b_head"));
  CHECK(contains(other.out, "10/90"));
  const auto unknown = with({"--sort", "js_maen"});
  CHECK(unknown.exit_code == 2);
  CHECK(contains(unknown.err, "did you mean js_mean?"));
  CHECK(contains(with({"--sort", "js_mean", "-o", folder / "d.h5"}).err, "--sort: an .h5"));
  CHECK(contains(with({"--sort", "js_mean", "--product", "frames"}).err,
                 "--sort does not apply to --product"));
}

TEST_CASE("small differences are printed with their digits") {
  const TemporaryFolder folder;
  call_of(1).write(folder.path() / "a.safetensors");
  REQUIRE(run_attnscope({"export", folder / "a.safetensors", "--heads", "0", "-o", folder / "m.h5",
                         "--quiet"})
              .exit_code == 0);
  const std::vector<std::string> run{"diff", folder / "m.h5", folder / "a.safetensors", "--quiet"};
  const auto printed = run_attnscope(run);
  INFO(printed.out);
  REQUIRE(printed.exit_code == 0);
  const size_t first = printed.out.find("     query ");
  REQUIRE(first != std::string::npos);
  const double js = std::stod(printed.out.substr(printed.out.find("JS ", first) + 3));
  const Json top = run_json({run.begin(), run.end() - 1})["pairs"][0]["top"][0];
  CHECK(js < 1e-4);
  CHECK(js == Approx(top["js"].get<double>()).epsilon(1e-3));
}

TEST_CASE("what cannot be compared is one clear line") {
  const TemporaryFolder folder;
  call_of(1).write(folder.path() / "a.safetensors");
  call_of(2, 40).write(folder.path() / "small.safetensors");
  const auto refusal = [&](std::vector<std::string> arguments, int code) {
    arguments.insert(arguments.begin(), {"diff", folder / "a.safetensors"});
    arguments.emplace_back("--quiet");
    const auto result = run_attnscope(arguments);
    CHECK(result.exit_code == code);
    CHECK(result.out.empty());
    return result.err;
  };
  CHECK(contains(refusal({folder / "small.safetensors"}, 2),
                 "maps of different sizes cannot be compared"));
  CHECK(contains(refusal({}, 2), "would be compared with itself"));
  CHECK(contains(refusal({"--b-head", "7"}, 2), "has no step 4 layer 2"));
  CHECK(contains(refusal({"--b-head", "x"}, 2), "--b-head x: expected a whole number"));
  CHECK(contains(refusal({"--b-head", "2", "--heads", "0", "--memory", "1KiB"}, 1), "memory"));
  // A NaN of side B is found before anything is computed.
  std::vector<float> q(3 * 90 * 16, 0.5f), k(90 * 16, 0.25f);
  q[100] = std::nanf("");
  CallFile()
      .tensor("q", "F32", {1, 3, 90, 16}, raw(q))
      .tensor("k", "F32", {1, 1, 90, 16}, raw(k))
      .fact("step", "4")
      .fact("layer", "2")
      .write(folder.path() / "nan.safetensors");
  const std::string nan = refusal({folder / "nan.safetensors"}, 1);
  CHECK(contains(nan, "nan.safetensors"));
  CHECK(contains(nan, "nan"));
}
