// Charts of heads: the numbers that they draw are those of `stats`, and of the definitions in
// double.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "io/files/json_types.h"
#include "io/results/csv_line.h"
#include "tests/support/attention_capture.h"
#include "tests/support/catch.h"
#include "tests/support/png_picture.h"
#include "tests/support/program.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A plot's answer; its rows by the names of the columns.
struct Answer {
  OrderedJson json;
  std::vector<std::map<std::string, OrderedJson>> rows;
};

/// Draws, and holds the .csv against the answer.
Answer plot(const std::string& input, const std::string& what, const Arguments& more = {}) {
  const TemporaryFolder folder;
  const std::string out = folder / "plot.png", data = folder / "plot.csv";
  Arguments words{"plot", input, "--what", what, "-o", out, "--data", data, "--json", "--quiet"};
  words.insert(words.end(), more.begin(), more.end());
  const ProgramResult run = run_attnscope(words);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  Answer answer{OrderedJson::parse(run.out), {}};
  CHECK(answer.json["format"] == "attnscope-plot/1");
  CHECK(answer.json["what"] == what);
  const Picture picture = read_png(out);
  CHECK(answer.json["width"] == picture.width);
  CHECK(answer.json["height"] == picture.height);
  const auto columns = answer.json["columns"].get<std::vector<std::string>>();
  std::string csv = csv_line(columns);
  for (const OrderedJson& row : answer.json["rows"]) {
    REQUIRE(row.size() == columns.size());
    std::vector<std::string> fields;
    auto& named = answer.rows.emplace_back();
    for (size_t i = 0; i < columns.size(); ++i) {
      named[columns[i]] = row[i];
      fields.push_back(csv_value(row[i]));
    }
    csv += csv_line(fields);
  }
  CHECK(read_file(data) == csv);
  return answer;
}

OrderedJson stats_of(const std::string& input, const Arguments& more = {}) {
  Arguments words{"stats", input, "--json", "--quiet"};
  words.insert(words.end(), more.begin(), more.end());
  const ProgramResult run = run_attnscope(words);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return OrderedJson::parse(run.out)["heads"];
}

double mean_of(const OrderedJson& heads, int64_t layer, const char* number) {
  double sum = 0;
  int64_t count = 0;
  for (const OrderedJson& head : heads) {
    if (head["layer"] != layer || head[number].is_null()) continue;
    sum += head[number].get<double>();
    ++count;
  }
  REQUIRE(count > 0);
  return sum / static_cast<double>(count);
}

constexpr const char* kKeysFor[] = {"keys_for_50", "keys_for_80", "keys_for_90", "keys_for_95",
                                    "keys_for_99"};

/// How many of a row's largest weights hold a share of it.
int64_t keys_for(std::vector<double> row, double share) {
  std::sort(row.rbegin(), row.rend());
  double sum = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    sum += row[i];
    if (sum >= share) return static_cast<int64_t>(i) + 1;
  }
  return static_cast<int64_t>(row.size());
}

void refused(const Arguments& words, const std::string& message, int code = 2) {
  const ProgramResult run = run_attnscope(words);
  INFO(run.err);
  CHECK(run.exit_code == code);
  CHECK(contains(run.err, message));
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
}

}  // namespace

TEST_CASE("recall is drawn of the numbers that stats has, as shares of the keys seen") {
  const std::string capture = sample("moving-shapes");
  const OrderedJson heads = stats_of(capture);
  Answer answer = plot(capture, "recall");
  CHECK(answer.json["heads"] == 16);
  REQUIRE(answer.rows.size() == 20);
  const double keys = 16 + 7 * 12 * 12;
  for (size_t i = 0; i < answer.rows.size(); ++i) {
    auto& row = answer.rows[i];
    CHECK(row["layer"] == static_cast<int64_t>(i / 5));
    CHECK(row["heads"] == 4);
    const double expected = mean_of(heads, static_cast<int64_t>(i / 5), kKeysFor[i % 5]);
    CHECK(row["keys"].get<double>() == Approx(expected).epsilon(1e-12));
    CHECK(row["density"].get<double>() == Approx(expected / keys).epsilon(1e-12));
  }
  CHECK(answer.rows[2]["recall"] == 0.9);
}

TEST_CASE("recall, entropy and mass of keys are those of the definitions in double") {
  const TemporaryFolder folder;
  AttentionCapture call(7, 100);
  for (int64_t i = 0; i < 100 * 100; ++i) {
    call.allowed.push_back((i % 100 < 60 || i % 7 == 0) && i / 100 != 3 ? 1 : 0);
  }
  call.file().write(folder / "call.safetensors");
  const std::string path = folder / "call.safetensors";
  std::vector<double> entropy(4), mass(100);
  double keys90 = 0, seen = 0;
  for (int64_t head = 0; head < 4; ++head) {
    const std::vector<double> map = call.weights(head);
    double rows = 0, head_keys = 0, head_seen = 0;
    for (int64_t i = 0; i < 100; ++i) {
      const std::vector<double> row(map.begin() + i * 100, map.begin() + (i + 1) * 100);
      if (i == 3) continue;
      ++rows;
      head_keys += static_cast<double>(keys_for(row, 0.9));
      for (size_t j = 0; j < 100; ++j) {
        if (row[j] == 0) continue;
        ++head_seen;
        entropy[static_cast<size_t>(head)] -= row[j] * std::log(row[j]) / 99;
        mass[j] += row[j] / 99 / 4;
      }
    }
    keys90 += head_keys / rows / 4;
    seen = head_seen / rows;
  }
  Answer recall = plot(path, "recall", {"--exact"});
  REQUIRE(recall.rows.size() == 5);
  CHECK(recall.rows[2]["keys"].get<double>() == Approx(keys90).epsilon(2e-3));
  CHECK(recall.rows[2]["density"].get<double>() == Approx(keys90 / seen).epsilon(2e-3));
  Answer depth = plot(path, "entropy");
  REQUIRE(depth.rows.size() == 4);
  double mean = 0;
  for (size_t head = 0; head < 4; ++head) {
    CHECK(depth.rows[head]["head"] == static_cast<int64_t>(head));
    CHECK(depth.rows[head]["entropy"].get<double>() == Approx(entropy[head]).epsilon(1e-5));
    mean += entropy[head] / 4;
  }
  CHECK(depth.rows[3]["layer_mean"].get<double>() == Approx(mean).epsilon(1e-5));
  Answer keys = plot(path, "keys");
  REQUIRE(keys.rows.size() == 100);
  for (size_t j = 0; j < 100; ++j) {
    CHECK(keys.rows[j]["first_key"] == static_cast<int64_t>(j));
    CHECK(keys.rows[j]["mass"].get<double>() == Approx(mass[j]).epsilon(1e-5).margin(1e-9));
  }
}

TEST_CASE("logits are counted as the definition has them, masked ones apart") {
  const TemporaryFolder folder;
  AttentionCapture call(11, 90);
  for (int64_t i = 0; i < 90 * 90; ++i) call.allowed.push_back(i % 90 <= i / 90 ? 1 : 0);
  call.file().write(folder / "call.safetensors");
  std::vector<double> logits;
  for (int64_t head = 0; head < call.heads; ++head) {
    for (int64_t i = 0; i < 90; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        double dot = 0;
        for (int64_t c = 0; c < call.d; ++c) {
          dot += double{call.q[static_cast<size_t>((head * 90 + i) * call.d + c)]} *
                 double{call.k[static_cast<size_t>((call.kv_head(head) * 90 + j) * call.d + c)]};
        }
        logits.push_back(dot / std::sqrt(static_cast<double>(call.d)));
      }
    }
  }
  Answer answer = plot(folder / "call.safetensors", "logits");
  CHECK(contains(answer.json["notes"].dump(),
                 "masked entries and those more than 1000 below their row's largest "
                 "(49.4\u00a0% of all)"));
  int64_t total = 0;
  double shares = 0;
  for (auto& row : answer.rows) {
    const double low = row["low"].get<double>(), high = row["high"].get<double>();
    int64_t expected = 0, near = 0;
    for (const double logit : logits) {
      expected += logit >= low && logit < high ? 1 : 0;
      near += std::min(std::abs(logit - low), std::abs(logit - high)) < 1e-5 ? 1 : 0;
    }
    const auto entries = row["entries"].get<int64_t>();
    INFO(low << " to " << high);
    CHECK(std::abs(entries - expected) <= near);
    total += entries;
    shares += row["share"].get<double>();
  }
  CHECK(total == std::ssize(logits));
  CHECK(shares == Approx(1));
}

TEST_CASE("biases that programs mask with do not press the logits into one bin") {
  const TemporaryFolder folder;
  AttentionCapture call(11, 40);
  for (int64_t i = 0; i < 40 * 40; ++i) call.allowed.push_back(i % 40 <= i / 40 ? 1 : 0);
  call.file().write(folder / "bools.safetensors");
  call.masked_bias = -10000;
  call.file().write(folder / "biases.safetensors");
  const Answer bools = plot(folder / "bools.safetensors", "logits");
  const Answer biases = plot(folder / "biases.safetensors", "logits");
  CHECK(biases.json["rows"].size() > 50);
  CHECK(biases.json["rows"] == bools.json["rows"]);
  CHECK(biases.json["notes"] == bools.json["notes"]);
}

TEST_CASE("logits that float32 does not hold are refused with their place") {
  // One of −inf is no masked one where no mask says so.
  const float sign = GENERATE(1.0F, -1.0F);
  const TemporaryFolder folder;
  AttentionCapture call(3, 20);
  for (float& value : call.q) value = 1e20F;
  for (float& value : call.k) value = sign * 1e20F;
  call.file().write(folder / "call.safetensors");
  const std::string out = folder / "x.png";
  refused({"plot", folder / "call.safetensors", "--what", "logits", "-o", out, "--quiet"},
          ": the logit, or a product on the way to it, is more than float32 holds", 1);
  CHECK_FALSE(fs::exists(out));
}

TEST_CASE("classes are counted layer by layer, or step by step") {
  const std::string capture = sample("moving-shapes");
  const OrderedJson heads = stats_of(capture);
  Answer layers = plot(capture, "classes");
  std::map<std::pair<int64_t, std::string>, int64_t> expected;
  for (const OrderedJson& head : heads) ++expected[{head["layer"], head["class"]}];
  for (auto& row : layers.rows) {
    CHECK(row["heads"] == expected[{row["layer"].get<int64_t>(), row["class"].get<std::string>()}]);
    CHECK(row["of"] == 4);
    CHECK(row["share"].get<double>() == row["heads"].get<double>() / 4);
  }
  const Answer gridless = plot(capture, "classes", {"--as", "grid=none", "--layers", "0"});
  CHECK(contains(gridless.json["notes"].dump(), "no grid: 4 of 4 heads"));
  const TemporaryFolder folder;
  REQUIRE(run_attnscope({"synth", "--grid", "4x6x6", "--text", "8@start", "--num-layers", "2",
                         "--num-heads", "3", "--num-steps", "3", "-o", folder / "steps", "--quiet"})
              .exit_code == 0);
  const OrderedJson of_steps = stats_of(folder / "steps");
  std::map<std::pair<int64_t, std::string>, int64_t> steps;
  for (const OrderedJson& head : of_steps) ++steps[{head["step"], head["class"]}];
  Answer answer = plot(folder / "steps", "classes");
  double shares = 0;
  for (auto& row : answer.rows) {
    CHECK(row["heads"] == steps[{row["step"].get<int64_t>(), row["class"].get<std::string>()}]);
    CHECK(row["layer"].is_null());
    CHECK(row["of"] == 6);
    shares += row["share"].get<double>();
  }
  CHECK(shares == Approx(3));
}

TEST_CASE("a table of stats is drawn as the capture that it is of") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  for (const std::string what : {"entropy", "classes", "recall"}) {
    Answer of_capture = plot(capture, what, {"--layers", "1-2"});
    for (const std::string ending : {".json", ".csv", ".h5"}) {
      const std::string table = folder / (what + ending);
      REQUIRE(run_attnscope({"stats", capture, "-o", table, "--quiet"}).exit_code == 0);
      Answer of_table = plot(table, what, {"--layers", "1-2"});
      INFO(what << ending);
      REQUIRE(of_table.rows.size() == of_capture.rows.size());
      for (size_t i = 0; i < of_table.rows.size(); ++i) {
        // What a row may see is told by the capture alone.
        if (what == "recall") CHECK(of_table.rows[i]["density"].is_null());
        for (const auto& [name, value] : of_capture.rows[i]) {
          if (name != "density") CHECK(of_table.rows[i][name] == value);
        }
      }
    }
  }
  const Answer recall = plot(folder / "recall.csv", "recall");
  CHECK(contains(recall.json["notes"].dump(), "does not tell how many keys a row may see"));
  const std::string svg = folder / "recall.svg";
  REQUIRE(run_attnscope({"plot", folder / "recall.csv", "--what", "recall", "-o", svg, "--quiet"})
              .exit_code == 0);
  CHECK_FALSE(contains(read_file(svg), "density"));
  CHECK(contains(read_file(svg), "how many keys a row may see"));
  Answer chosen = plot(folder / "entropy.json", "entropy", {"--where", "entropy<6"});
  CHECK(chosen.rows.size() > 4);
  CHECK(chosen.rows.size() < 16);
  for (auto& row : chosen.rows) CHECK(row["entropy"].get<double>() < 6);
}

TEST_CASE("heads without a grid are not counted where a table lacks the number that tells") {
  const TemporaryFolder folder;
  const std::string table = folder / "s.json";
  REQUIRE(run_attnscope({"stats", sample("moving-shapes"), "-o", table, "--quiet"}).exit_code == 0);
  const OrderedJson all = OrderedJson::parse(read_file(table));
  OrderedJson none = all, some = all;
  int64_t expected = 0;
  for (size_t i = 0; i < all["heads"].size(); ++i) {
    none["heads"][i].erase("temporal_score");
    if (i % 2 == 0) continue;
    some["heads"][i]["temporal_score"] = nullptr;
    const std::string which = all["heads"][i]["class"];
    expected += which == "sink" || which == "text" || which == "global" ? 1 : 0;
  }
  REQUIRE(expected > 0);
  write_bytes(table, none.dump());
  CHECK(plot(table, "classes").json["notes"].empty());
  write_bytes(table, some.dump());
  CHECK(contains(plot(table, "classes").json["notes"].dump(),
                 "no grid: " + std::to_string(expected) + " of 16 heads"));
}

TEST_CASE("masses of keys are drawn of a table that has them") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  Answer of_capture = plot(capture, "keys", {"--layers", "1", "--heads", "0,3"});
  for (const std::string ending : {".json", ".h5"}) {
    const std::string table = folder / ("masses" + ending);
    REQUIRE(run_attnscope({"stats", capture, "--with", "column_mass", "-o", table, "--quiet"})
                .exit_code == 0);
    Answer of_table = plot(table, "keys", {"--layers", "1", "--where", "head=0,3"});
    CHECK(of_table.json["heads"] == 2);
    REQUIRE(of_table.rows.size() == of_capture.rows.size());
    for (size_t i = 0; i < of_table.rows.size(); ++i) {
      CHECK(of_table.rows[i]["mass"].get<double>() ==
            Approx(of_capture.rows[i]["mass"].get<double>()).epsilon(1e-9));
    }
    CHECK(contains(of_table.json["notes"].dump(), "where text and frames begin"));
  }
}

TEST_CASE("masses that no row gives are refused with their place") {
  const TemporaryFolder folder;
  AttentionCapture(3, 20).file().write(folder / "call.safetensors");
  const std::string table = folder / "heads.json", out = folder / "x.png";
  REQUIRE(run_attnscope({"stats", folder / "call.safetensors", "--with", "column_mass", "-o", table,
                         "--quiet"})
              .exit_code == 0);
  const OrderedJson good = OrderedJson::parse(read_file(table));
  const Arguments words{"plot", table, "--what", "keys", "-o", out, "--quiet"};
  for (const double mass : {-0.5, 1.5, 1e30}) {
    OrderedJson bad = good;
    bad["heads"][1]["column_mass"][7] = mass;
    write_bytes(table, bad.dump());
    refused(words, "column_mass of key 7: a mass is 0 to 1 (got ", 1);
  }
  OrderedJson zeros = good;
  for (OrderedJson& head : zeros["heads"]) {
    for (OrderedJson& mass : head["column_mass"]) mass = 0;
  }
  write_bytes(table, zeros.dump());
  refused(words, "no key has mass");
  CHECK_FALSE(fs::exists(out));
}

TEST_CASE("very light keys keep their masses, lie on the axis, and are told") {
  const TemporaryFolder folder;
  AttentionCapture(3, 20).file().write(folder / "call.safetensors");
  const std::string table = folder / "heads.json";
  REQUIRE(run_attnscope({"stats", folder / "call.safetensors", "--with", "column_mass", "-o", table,
                         "--quiet"})
              .exit_code == 0);
  OrderedJson light = OrderedJson::parse(read_file(table));
  for (OrderedJson& head : light["heads"]) head["column_mass"][7] = 3e-20;
  write_bytes(table, light.dump());
  Answer answer = plot(table, "keys");
  CHECK(answer.rows[7]["mass"].get<double>() == Approx(3e-20).epsilon(1e-6).margin(0));
  const std::string notes = answer.json["notes"].dump();
  CHECK(contains(notes, "keys of less mass than "));
  CHECK(contains(notes, " lie on the axis"));
  const std::string svg = folder / "keys.svg";
  REQUIRE(run_attnscope({"plot", table, "--what", "keys", "-o", svg, "--quiet"}).exit_code == 0);
  const std::string picture = read_file(svg);
  CHECK(contains(picture, "where text and frames begin"));
  CHECK_FALSE(contains(picture, "10⁻¹"));
}

TEST_CASE("samples of rows are those of stats") {
  const std::string capture = sample("moving-shapes");
  const OrderedJson heads = stats_of(capture, {"--sample", "32", "--layers", "1"});
  Answer answer = plot(capture, "entropy", {"--sample", "32", "--layers", "1"});
  REQUIRE(answer.rows.size() == heads.size());
  for (size_t i = 0; i < answer.rows.size(); ++i) {
    auto& row = answer.rows[i];
    CHECK(row["entropy"] == heads[i]["entropy"]);
  }
}

TEST_CASE("plots of steps and branches, of one head, and of keys that are text and frames") {
  const TemporaryFolder folder;
  REQUIRE(run_attnscope({"synth", "--grid", "4x6x6", "--text", "8@start", "--num-layers", "2",
                         "--num-heads", "3", "--num-steps", "3", "-o", folder / "steps", "--quiet"})
              .exit_code == 0);
  const Answer entropy = plot(folder / "steps", "entropy");
  CHECK(entropy.rows.size() == 18);
  CHECK(plot(folder / "steps", "entropy", {"--layers", "0", "--heads", "0", "--steps", "1"})
            .rows.size() == 1);
  for (const std::string what : {"recall", "classes", "logits", "keys"}) {
    const Answer one =
        plot(folder / "steps", what, {"--layers", "0", "--heads", "0", "--steps", "1"});
    CHECK(one.json["heads"] == 1);
  }
}

TEST_CASE("scores that are not normalised are left out, and said") {
  const TemporaryFolder folder;
  const AttentionCapture call(3, 50);
  call.file().write(folder / "call.safetensors");
  const Arguments sigmoid{"--score", "sigmoid"};
  const auto words = [&](const std::string& what) {
    return Arguments{"plot",    folder / "call.safetensors",
                     "--what",  what,
                     "-o",      folder / "x.png",
                     "--score", "sigmoid",
                     "--quiet"};
  };
  refused(words("entropy"), "--what entropy: no head has one: scores that are not normalised");
  refused(words("recall"), "--what recall: no head counts keys");
  refused(words("classes"), "--what classes: no head has a class");
  CHECK(fs::directory_iterator(folder.path()) != fs::directory_iterator());
  CHECK_FALSE(fs::exists(folder / "x.png"));
  CHECK(plot(folder / "call.safetensors", "logits", sigmoid).json["heads"] == 4);
  refused(words("keys"), "--what keys: no head has masses of keys that are shares of a row");
  const std::string table = folder / "heads.json";
  REQUIRE(run_attnscope({"stats", folder / "call.safetensors", "--score", "sigmoid", "--with",
                         "column_mass", "-o", table, "--quiet"})
              .exit_code == 0);
  refused({"plot", table, "--what", "keys", "-o", folder / "x.png"},
          "--what keys: no head has masses of keys that are shares of a row");
}

TEST_CASE("what cannot be drawn is refused in one line that tells the way out") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  const std::string out = folder / "x.png";
  REQUIRE(run_attnscope({"export", capture, "--layers", "0", "--heads", "0", "-o", folder / "m.h5",
                         "--quiet"})
              .exit_code == 0);
  REQUIRE(run_attnscope({"stats", capture, "-o", folder / "s.csv", "--quiet"}).exit_code == 0);
  refused({"plot", folder / "m.h5", "--what", "entropy", "-o", out},
          "is an export of maps; plots are drawn from a capture");
  refused({"plot", folder / "s.csv", "--what", "keys", "-o", out},
          "attnscope stats CAPTURE --with column_mass");
  refused({"plot", folder / "s.csv", "--what", "logits", "-o", out}, "give the capture");
  refused({"plot", folder / "s.csv", "--what", "entropy", "--sample", "8", "-o", out},
          "--sample: ");
  refused({"plot", capture, "--what", "entropy", "--exact", "-o", out}, "--exact: --what entropy");
  refused({"plot", capture, "--what", "entropie", "-o", out}, "did you mean entropy?");
  refused({"plot", capture, "--what", "entropy", "-o", folder / "x.jpg"}, "the name must end in");
  refused({"plot", capture, "--what", "entropy", "-o", out, "--data", folder / "x.txt"}, "--data ");
  refused({"plot", folder / "nothing", "--what", "entropy", "-o", out}, "nothing", 1);
  CHECK_FALSE(fs::exists(out));
}

TEST_CASE("files that exist are replaced by --force alone, and a stop leaves nothing") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  const std::string out = folder / "x.png", data = folder / "x.csv";
  const Arguments words{"plot", capture, "--what", "entropy", "-o", out, "--data", data, "--quiet"};
  REQUIRE(run_attnscope(words).exit_code == 0);
  fs::remove(out);
  refused(words, "x.csv", 1);
  CHECK_FALSE(fs::exists(out));
  Arguments forced = words;
  forced.emplace_back("--force");
  CHECK(run_attnscope(forced).exit_code == 0);
  fs::remove(out);
  fs::remove(data);
  ProgramSettings stopped;
  stopped.signal = SIGINT;
  const ProgramResult run = run_attnscope(words, stopped);
  INFO(run.err);
  CHECK(run.exit_code == 4);
  CHECK(fs::is_empty(folder.path()));
}
