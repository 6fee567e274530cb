#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "io/files/json_types.h"
#include "tests/cli/common/fault_settings.h"
#include "tests/support/attention_capture.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/synthetic.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

using Bits = std::vector<uint8_t>;  ///< [tokens, tokens]

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// numpy's default: linear interpolation.
double quantile_of(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(place);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (values[high] - values[low]) * (place - static_cast<double>(low));
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

struct Expected {
  double density = 0, recall = 0, recall_p05 = 0, oracle = 0, stderr_ = 0, error = 0, error_p95 = 0;
  double effective_oracle = 0;
  int64_t masked_rows = 0, empty_rows = 0;
};

/// The definitions, in double. Oracle and errors over `rows`.
Expected reference(const AttentionCapture& c, int64_t head, const Bits& mask,
                   const std::vector<int64_t>& rows) {
  const std::vector<double> map = c.weights(head);
  const int64_t n = c.tokens;
  Expected e;
  std::vector<double> recalls, oracles, effective_oracles, errors;
  double error_sum = 0, norm_sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    std::vector<double> row(map.begin() + i * n, map.begin() + (i + 1) * n);
    double recall = 0;
    int64_t kept = 0, useful = 0;
    for (int64_t j = 0; j < n; ++j) {
      if (mask[static_cast<size_t>(i * n + j)] == 0) continue;
      recall += row[static_cast<size_t>(j)];
      ++kept;
      useful += row[static_cast<size_t>(j)] > 0 ? 1 : 0;
    }
    e.density += static_cast<double>(kept) / static_cast<double>(n * n);
    if (*std::max_element(row.begin(), row.end()) == 0) {
      ++e.masked_rows;
      continue;
    }
    e.empty_rows += useful == 0 ? 1 : 0;
    recalls.push_back(recall);
    if (std::find(rows.begin(), rows.end(), i) == rows.end()) continue;
    double error = 0, norm = 0;
    for (int64_t x = 0; x < c.d; ++x) {
      double whole = 0, part = 0;
      for (int64_t j = 0; j < n; ++j) {
        const double term = row[static_cast<size_t>(j)] * c.value(head, j, x);
        whole += term;
        if (mask[static_cast<size_t>(i * n + j)] != 0) part += term;
      }
      const double difference = (recall > 0 ? part / recall : 0) - whole;
      error += difference * difference;
      norm += whole * whole;
    }
    error_sum += error;
    norm_sum += norm;
    errors.push_back(std::sqrt(error / norm));
    std::sort(row.begin(), row.end(), std::greater<>());
    oracles.push_back(std::accumulate(row.begin(), row.begin() + kept, 0.0));
    effective_oracles.push_back(std::accumulate(row.begin(), row.begin() + useful, 0.0));
  }
  e.recall = mean_of(recalls);
  e.recall_p05 = quantile_of(recalls, 0.05);
  e.oracle = mean_of(oracles);
  e.effective_oracle = mean_of(effective_oracles);
  double squares = 0;
  for (double value : oracles) squares += (value - e.oracle) * (value - e.oracle);
  const auto count = static_cast<double>(oracles.size());
  e.stderr_ = std::sqrt(squares / (count - 1) / count);
  e.error = std::sqrt(error_sum / norm_sum);
  e.error_p95 = quantile_of(errors, 0.95);
  return e;
}

std::vector<int64_t> rows_looked_at(int64_t n, bool exact) {
  std::vector<int64_t> rows;
  if (exact || n <= 256) {
    rows.resize(static_cast<size_t>(n));
    std::iota(rows.begin(), rows.end(), int64_t{0});
    return rows;
  }
  for (int64_t i = 0; i < 256; ++i) {
    rows.push_back(
        static_cast<int64_t>((static_cast<double>(i) + 0.5) * static_cast<double>(n) / 256.0));
  }
  return rows;
}

bool near(const Json& value, double expected) {
  // Weights carry 1e-6 relative, their sums and outputs little more.
  return value.is_number() && std::abs(value.get<double>() - expected) <= 5e-6 * (1 + expected);
}

void check_head(const Json& got, const Expected& e, bool sampled) {
  INFO(got.dump());
  INFO("recall " << e.recall << " p05 " << e.recall_p05 << " oracle " << e.oracle << " error "
                 << e.error << " p95 " << e.error_p95 << " stderr " << e.stderr_);
  CHECK(std::abs(got["density"].get<double>() - e.density) < 1e-12);
  CHECK(near(got["recall"], e.recall));
  CHECK(near(got["recall_p05"], e.recall_p05));
  CHECK(near(got["oracle_recall"], e.oracle));
  CHECK(near(got["effective_oracle_recall"], e.effective_oracle));
  CHECK(near(got["output_error"], e.error));
  CHECK(near(got["output_error_p95"], e.error_p95));
  CHECK(got["masked_rows"] == e.masked_rows);
  CHECK(got["empty_rows"] == e.empty_rows);
  if (sampled) {
    CHECK(near(got["oracle_stderr"], e.stderr_));
    CHECK(got["sampled_rows"] == 256);
  } else {
    CHECK(got["oracle_stderr"].is_null());
  }
}

Json run_json(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "mask");
  arguments.insert(arguments.end(), {"--json", "--quiet"});
  const auto result = run_attnscope(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out);
}

/// A .npy of bool.
void write_bits(const std::string& path, const std::string& shape, const Bits& bits) {
  std::string dict = "{'descr': '|b1', 'fortran_order': False, 'shape': (" + shape + "), }";
  dict.resize(117, ' ');
  dict += '\n';
  write_bytes(path, npy_bytes(dict, raw(bits)));
}

/// A 2x6x8 grid behind 5 text tokens, and more tokens than are sampled where `large`.
struct Case {
  explicit Case(bool large) : frames(large ? 6 : 2), capture(11, 5 + frames * 48) {}
  std::string grid() const { return std::to_string(frames) + "x6x8"; }
  CallFile file() const {
    CallFile file = capture.file();
    file.fact("grid", grid()).fact("text", "5@start");
    return file;
  }
  Bits spatial() const {
    Bits bits;
    for (int64_t i = 0; i < capture.tokens; ++i) {
      for (int64_t j = 0; j < capture.tokens; ++j) {
        bits.push_back(i < 5 || j < 5 || (i - 5) / 48 == (j - 5) / 48 ? 1 : 0);
      }
    }
    return bits;
  }
  int64_t frames;
  AttentionCapture capture;
};

Bits window(int64_t n, int64_t reach) {
  Bits bits;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) bits.push_back(std::abs(i - j) <= reach ? 1 : 0);
  }
  return bits;
}

}  // namespace

TEST_CASE("the mask lab agrees with the definitions in double") {
  for (const bool large : {false, true}) {
    const TemporaryFolder folder;
    const Case c(large);
    const std::string path = folder / "call.safetensors";
    c.file().write(path);
    const int64_t n = c.capture.tokens;
    REQUIRE((n > 256) == large);
    for (const bool exact : {false, true}) {
      std::vector<std::string> arguments{path, "--mask", "spatial", "--mask", "window:9"};
      if (exact) arguments.emplace_back("--exact");
      const Json json = run_json(arguments);
      CHECK(json["format"] == "attnscope-mask/1");
      REQUIRE(json["heads"].size() == 8);
      const auto rows = rows_looked_at(n, exact);
      for (size_t i = 0; i < 8; ++i) {
        const Json& head = json["heads"][i];
        const bool first = i % 2 == 0;
        CHECK(head["head"] == i / 2);
        CHECK(head["mask"] == (first ? "spatial" : "window:9"));
        CHECK(head["kind"] == "joint");
        check_head(head,
                   reference(c.capture, static_cast<int64_t>(i / 2),
                             first ? c.spatial() : window(n, 9), rows),
                   large && !exact);
      }
    }
  }
}

TEST_CASE("the call's own mask shapes the weights that the lab measures") {
  const TemporaryFolder folder;
  Case c(true);
  std::mt19937_64 random(4);
  const int64_t n = c.capture.tokens;
  for (int64_t i = 0; i < n * n; ++i) {
    // Row 7 keeps nothing, row 9 nothing that a window keeps.
    const int64_t row = i / n, key = i % n;
    const bool allowed = row == 7 ? false : row == 9 ? key > 100 : random() % 3 != 0;
    c.capture.allowed.push_back(allowed ? 1 : 0);
  }
  const std::string path = folder / "call.safetensors";
  c.file().write(path);
  const Json json = run_json({path, "--mask", "window:20", "--heads", "1,3", "--exact"});
  REQUIRE(json["heads"].size() == 2);
  for (const Json& head : json["heads"]) {
    const Expected e =
        reference(c.capture, head["head"].get<int64_t>(), window(n, 20), rows_looked_at(n, true));
    CHECK(e.masked_rows == 1);
    CHECK(e.empty_rows == 1);
    check_head(head, e, false);
    // The budget of what the call allows is a smaller one.
    CHECK(e.effective_oracle < e.oracle - 0.005);
    CHECK(head["effective_density"] < 0.7 * head["density"].get<double>());
    CHECK(head["effective_density"] > 0.6 * head["density"].get<double>());
  }
}

TEST_CASE("a mask that keeps everything loses nothing, one that keeps nothing all") {
  const TemporaryFolder folder;
  const Case c(false);
  const std::string path = folder / "call.safetensors";
  c.file().write(path);
  const int64_t n = c.capture.tokens;
  write_bits(folder / "nothing.npy", "1, 1", Bits{0});
  const Json json = run_json(
      {path, "--mask", "none", "--mask", folder / "nothing.npy", "--block", std::to_string(n)});
  const Json& all = json["heads"][0];
  CHECK(near(all["recall"], 1));
  CHECK(near(all["oracle_recall"], 1));
  CHECK(all["density"] == 1.0);
  CHECK(all["output_error"] == 0.0);
  const Json& nothing = json["heads"][1];
  CHECK(nothing["density"] == 0.0);
  CHECK(nothing["recall"] == 0.0);
  CHECK(nothing["oracle_recall"] == 0.0);
  CHECK(near(nothing["output_error"], 1));
  CHECK(nothing["empty_rows"] == n);
}

TEST_CASE("block masks from files, ragged, for all heads or each") {
  const TemporaryFolder folder;
  const Case c(false);
  const int64_t n = c.capture.tokens, block = 16, blocks = (n + block - 1) / block;
  REQUIRE(n % block != 0);
  const std::string path = folder / "call.safetensors";
  c.file().write(path);
  std::mt19937_64 random(8);
  Bits bits;
  for (int64_t i = 0; i < 4 * blocks * blocks; ++i) bits.push_back(random() % 2);
  const std::string extent = std::to_string(blocks) + ", " + std::to_string(blocks);
  write_bits(folder / "each.npy", "4, " + extent, bits);
  write_bits(folder / "one.npy", extent, Bits(bits.begin(), bits.begin() + blocks * blocks));
  const Json json = run_json({path, "--mask", folder / "each.npy", "--mask", folder / "one.npy",
                              "--block", std::to_string(block)});
  REQUIRE(json["heads"].size() == 8);
  for (size_t i = 0; i < 8; ++i) {
    const int64_t plane = i % 2 == 0 ? static_cast<int64_t>(i / 2) : 0;
    Bits mask;
    for (int64_t a = 0; a < n; ++a) {
      for (int64_t b = 0; b < n; ++b) {
        mask.push_back(
            bits[static_cast<size_t>((plane * blocks + a / block) * blocks + b / block)]);
      }
    }
    check_head(json["heads"][i],
               reference(c.capture, static_cast<int64_t>(i / 2), mask, rows_looked_at(n, true)),
               false);
  }
  // A block mask that was read from a file is saved bit for bit.
  const std::string saved = folder / "saved.npy";
  run_json({path, "--mask", folder / "each.npy", "--block", "16", "--save", saved});
  const std::string again = read_file(saved);
  CHECK(again.substr(again.size() - bits.size()) == raw(bits));
}

TEST_CASE("trees of masks") {
  const TemporaryFolder folder;
  const Case c(false);
  const std::string path = folder / "call.safetensors";
  c.file().write(path);
  const int64_t n = c.capture.tokens;
  const int64_t blocks = (n + 15) / 16;
  Bits diagonal;
  for (int64_t i = 0; i < blocks * blocks; ++i) diagonal.push_back(i % (blocks + 1) == 0);
  write_bits(folder / "blocks.npy", std::to_string(blocks) + ", " + std::to_string(blocks),
             diagonal);
  std::ofstream(folder / "tree.json")
      << R"({"or": [{"and": ["spatial", "window:9"]}, {"file": "blocks.npy", "block": 16}]})";
  std::ofstream(folder / "list.json") << R"(["window:2", "spatial"])";
  const Bits spatial = c.spatial(), nine = window(n, 9), two = window(n, 2);
  Bits tree, list;
  for (int64_t i = 0; i < n * n; ++i) {
    const auto at = static_cast<size_t>(i);
    tree.push_back((spatial[at] & nine[at]) | (i / n / 16 == i % n / 16 ? 1 : 0));
    list.push_back(two[at] | spatial[at]);
  }
  const Json json = run_json(
      {path, "--mask", folder / "tree.json", "--mask", folder / "list.json", "--heads", "2"});
  check_head(json["heads"][0], reference(c.capture, 2, tree, rows_looked_at(n, true)), false);
  check_head(json["heads"][1], reference(c.capture, 2, list, rows_looked_at(n, true)), false);
}

TEST_CASE("vertical-slash keeps the columns and diagonals with the most mass") {
  const TemporaryFolder folder;
  Case c(true);
  // Much attention on key 33, and on what stands 48 places on.
  const int64_t n = c.capture.tokens, d = c.capture.d;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t x = 0; x < d; ++x) {
      const auto at = static_cast<size_t>(i * d + x);
      if (i + 48 < n) c.capture.k[at + static_cast<size_t>(48 * d)] = 3 * c.capture.q[at];
    }
  }
  const std::string path = folder / "call.safetensors";
  c.file().write(path);
  const std::string saved = folder / "kept.npy";
  run_json({path, "--mask", "vertical-slash:vertical=3,slash=2,rows=50", "--heads", "0", "--save",
            saved, "--block", "1"});
  const std::vector<double> map = c.capture.weights(0);
  std::vector<double> columns(static_cast<size_t>(n)), diagonals(static_cast<size_t>(2 * n - 1));
  for (int64_t s = 0; s < 50; ++s) {
    const int64_t i = (2 * s + 1) * n / 100;
    for (int64_t j = 0; j < n; ++j) {
      columns[static_cast<size_t>(j)] += map[static_cast<size_t>(i * n + j)];
      diagonals[static_cast<size_t>(j - i + n - 1)] += map[static_cast<size_t>(i * n + j)];
    }
  }
  const auto top = [](const std::vector<double>& sums, size_t count) {
    std::vector<int64_t> order(sums.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return sums[static_cast<size_t>(a)] > sums[static_cast<size_t>(b)];
    });
    order.resize(count);
    return order;
  };
  const auto verticals = top(columns, 3), slashes = top(diagonals, 2);
  CHECK(slashes.front() == 48 + n - 1);
  Bits expected;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const bool kept = i < 5 || j < 5 ||
                        std::find(verticals.begin(), verticals.end(), j) != verticals.end() ||
                        std::find(slashes.begin(), slashes.end(), j - i + n - 1) != slashes.end();
      expected.push_back(kept ? 1 : 0);
    }
  }
  const std::string bytes = read_file(saved);
  CHECK(bytes.substr(bytes.size() - expected.size()) == raw(expected));
}

TEST_CASE("the lab's numbers depend neither on memory nor on threads") {
  const TemporaryFolder folder;
  const Case c(true);
  const std::string path = folder / "call.safetensors";
  c.file().write(path);
  const std::vector<std::string> common{
      "mask",    path,           "--quiet",       "--json", "--mask",
      "spatial", "--mask",       "topk:block=16", "--mask", "vertical-slash:vertical=9,slash=9",
      "--mask",  "topp:block=16"};
  std::vector<std::string> outputs;
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--threads", "1", "--memory", "3MiB"},
        {"--threads", "3", "--memory", "1GiB"},
        {"--threads", "2", "--memory", "4MiB"}}) {
    auto arguments = common;
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto result = run_attnscope(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    outputs.push_back(result.out);
  }
  CHECK(outputs[0] == outputs[1]);
  CHECK(outputs[0] == outputs[2]);
}

TEST_CASE("the lab's table, file and refusals") {
  const TemporaryFolder folder;
  const Case c(false);
  const std::string path = folder / "call.safetensors";
  c.file().write(path);
  const auto text = run_attnscope({"mask", path, "--mask", "spatial", "--heads", "0", "--time"});
  CHECK(text.exit_code == 0);
  CHECK(contains(text.out, "density"));
  CHECK(contains(text.out, "spatial"));
  CHECK(contains(text.out, "time"));
  CHECK_FALSE(contains(text.out, "eff.orc"));
  const auto under = run_attnscope(
      {"mask", path, "--mask", "spatial", "--heads", "0", "--own-mask", "causal", "--quiet"});
  CHECK(contains(under.out, "oracle  eff.orc  out.err"));
  const auto csv = run_attnscope({"mask", path, "--mask", "tiles:size=1x2x2,window=1x1x1", "-o",
                                  folder / "table.csv", "--quiet"});
  CHECK(csv.exit_code == 0);
  CHECK(csv.out.empty());
  const std::string table = read_file(folder / "table.csv");
  CHECK(contains(table, "step,layer,branch,kind,batch,head,mask,density,"));
  CHECK(contains(table, ",\"tiles:size=1x2x2,window=1x1x1\","));
  CHECK(std::count(table.begin(), table.end(), '\n') == 5);
  const auto plan = run_attnscope({"mask", path, "--mask", "spatial", "--dry-run", "--json"});
  CHECK(contains(plan.out, "attnscope-plan/1"));

  const std::string cross = folder / "cross.safetensors";
  CallFile()
      .pair({1, 1, 24, 8}, {1, 1, 7, 8})
      .fact("grid", "2x3x4")
      .fact("q_state", "final")
      .write(cross);
  write_bits(folder / "small.npy", "2, 2", Bits{1, 0, 0, 1});
  write_bytes(folder / "float.npy",
              npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }\n", "abcd"));
  std::ofstream(folder / "bad.json") << R"({"xor": ["spatial"]})";
  std::ofstream(folder / "typo.json") << R"({"and": ["spatal"]})";
  struct Refusal {
    std::vector<std::string> arguments;
    int exit_code;
    std::string part;
  };
  const std::vector<Refusal> refusals{
      {{path}, 2, "needs --mask"},
      {{path, "--mask", "spatal"}, 2, "did you mean spatial?"},
      {{cross, "--mask", "spatial"}, 2, "cross attention"},
      {{path, "--mask", folder / "small.npy"}, 2, "--block"},
      {{path, "--mask", folder / "small.npy", "--block", "8"}, 2, "do not cover 101"},
      {{path, "--mask", folder / "float.npy", "--block", "8"}, 1, "got f32"},
      {{path, "--mask", folder / "bad.json"}, 1, "expected a pattern's text"},
      {{path, "--mask", folder / "typo.json"}, 2, "did you mean spatial?"},
      {{path, "--mask", folder / "missing.npy", "--block", "8"}, 1, "missing.npy"},
      {{path, "--mask", "spatial", "-o", folder / "table.csv"}, 1, "already exists"},
      {{path, "--mask", "spatial", "-o", folder / "table.txt"}, 2, "must end in .csv or .json"},
      {{path, "--mask", "spatial", "--save", folder / "x.h5"}, 2, "must end in .npy (got \".h5\")"},
      {{path, "--mask", "spatial", "--block", "64"}, 2, "--block 64: is of --mask FILE.npy"},
      {{path, "--mask", "spatial", "--mask", "none", "--save", folder / "x.npy"}, 2, "2 masks"},
      {{path, "--mask", "spatial", "--score", "sigmoid"}, 2, "sigmoid"},
      {{path, "--mask", "spatial", "--own-mask", "casual"}, 2, "--own-mask casual"},
  };
  for (const Refusal& refusal : refusals) {
    auto arguments = refusal.arguments;
    arguments.insert(arguments.begin(), "mask");
    const auto result = run_attnscope(arguments);
    INFO(refusal.part << "\n" << result.err);
    CHECK(result.exit_code == refusal.exit_code);
    CHECK(contains(result.err, refusal.part));
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  }
  // Cross attention has no places, but blocks; that its keys are text does not keep them.
  const Json blocks = run_json({cross, "--mask", "topk:block=3,blocks=1"});
  CHECK(blocks["heads"][0]["density"] == 3.0 / 7);
  CHECK(blocks["heads"][0]["output_error"].is_null());
  const auto own = run_attnscope({"mask", path, "--mask", "causal", "--own-mask", "causal",
                                  "--mask", "none", "--heads", "0", "--json"});
  REQUIRE(own.exit_code == 0);
  // The recall of what the call keeps anyway is whole.
  CHECK(near(Json::parse(own.out)["heads"][0]["recall"], 1));
  CHECK(near(Json::parse(own.out)["heads"][1]["effective_density"], 51.0 / 101));
}

TEST_CASE("values that are no numbers are told, not spread") {
  const TemporaryFolder folder;
  Case c(false);
  c.capture.v[static_cast<size_t>(c.capture.tokens * c.capture.d + 13 * c.capture.d + 2)] =
      std::numeric_limits<float>::quiet_NaN();
  const std::string path = folder / "call.safetensors";
  c.file().write(path);
  const auto result = run_attnscope({"mask", path, "--mask", "spatial"});
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "head 1, token 13, channel 2"));
}

TEST_CASE("an interrupted lab writes nothing; its memory stays within the budget") {
  const TemporaryFolder folder;
  const std::string small = folder / "small.safetensors";
  write_synthetic_head(small, 800, 16);
  const auto to = [&](const std::string& name) {
    return std::vector<std::string>{"mask",      small,
                                    "--mask",    "window:100",
                                    "--backend", "reference",
                                    "-o",        folder / (name + ".csv"),
                                    "--save",    folder / (name + ".npy")};
  };
  const long reads = calls_of(to("whole"), "stop-read");
  const auto result = run_attnscope(to("stopped"), with_fault("stop-read", reads / 2));
  INFO(result.err);
  CHECK(result.exit_code == 4);
  CHECK_FALSE(std::filesystem::exists(folder / "stopped.csv"));
  CHECK_FALSE(std::filesystem::exists(folder / "stopped.npy"));
  CHECK_FALSE(std::filesystem::exists(folder / "stopped.npy.part"));
  if (sanitized()) return;
  const std::string large = folder / "large.safetensors";
  write_synthetic_head(large, 17776, 64);
  const auto done = run_attnscope(
      {"mask", large, "--mask", "window:100", "--mask", "topk", "--memory", "16MiB", "--quiet"});
  INFO("peak " << done.peak_bytes << "\n" << done.err);
  CHECK(done.exit_code == 0);
  CHECK(done.peak_bytes <= (16 + 64) << 20);
}
