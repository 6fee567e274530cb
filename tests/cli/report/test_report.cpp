// `attnscope report`: its numbers, maps and choices against double precision, its size, what it
// does with inputs that lack something.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "io/files/base64.h"
#include "io/files/json_types.h"
#include "tests/cli/common/fault_settings.h"
#include "tests/support/attention_capture.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/program_heads.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// The text of the page's element of this id.
std::string element(const std::string& page, const std::string& id) {
  const std::string start = "id=\"" + id + "\">";
  const size_t at = page.find(start);
  REQUIRE(at != std::string::npos);
  const size_t begin = at + start.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

struct Page {
  std::string text;
  Json facts, answer;

  /// Makes it with these arguments, behind `report`.
  Page(std::vector<std::string> arguments, const std::string& out) {
    arguments.insert(arguments.begin(), "report");
    arguments.insert(arguments.end(), {"-o", out, "--json", "--quiet"});
    answer = Json::parse(run_well(arguments).out);
    text = read_bytes(out);
    facts = Json::parse(element(text, "facts"));
  }

  std::vector<std::byte> data(const std::string& name) const {
    const std::string code = element(text, "data-" + name);
    size_t size = code.size() / 4 * 3;
    for (size_t i = code.size(); i > 0 && code[i - 1] == '='; --i) --size;
    std::vector<std::byte> bytes(size);
    REQUIRE(from_base64(code, bytes));
    return bytes;
  }
};

bool has_line(const Json& lines, const std::string& words) {
  return std::any_of(lines.begin(), lines.end(), [&](const Json& line) {
    return line.get<std::string>().find(words) != std::string::npos;
  });
}

/// Mean over the sampled rows of the divergence in bits between two maps' masses in runs of keys.
double divergence(const std::vector<double>& a, const std::vector<double>& b, int64_t tokens) {
  const int64_t rows = std::min<int64_t>(64, tokens), width = (tokens + 63) / 64;
  double sum = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = tokens <= 64 ? r : (2 * r + 1) * tokens / (2 * rows);
    for (int64_t first = 0; first < tokens; first += width) {
      double p = 0, q = 0;
      for (int64_t j = first; j < std::min(tokens, first + width); ++j) {
        p += a[static_cast<size_t>(row * tokens + j)];
        q += b[static_cast<size_t>(row * tokens + j)];
      }
      const double m = (p + q) / 2;
      if (p > 0) sum += p / 2 * std::log2(p / m);
      if (q > 0) sum += q / 2 * std::log2(q / m);
    }
  }
  return sum / static_cast<double>(rows);
}

/// Cells of at most `most` on a side, as their largest weights.
std::vector<double> cells_of(const std::vector<double>& map, int64_t tokens, int64_t most) {
  int64_t side = 1;
  while ((tokens + side - 1) / side > most) side *= 2;
  const int64_t cells = (tokens + side - 1) / side;
  std::vector<double> values(static_cast<size_t>(cells * cells));
  for (int64_t i = 0; i < tokens; ++i) {
    for (int64_t j = 0; j < tokens; ++j) {
      double& cell = values[static_cast<size_t>(i / side * cells + j / side)];
      cell = std::max(cell, map[static_cast<size_t>(i * tokens + j)]);
    }
  }
  return values;
}

void check_codes(std::span<const std::byte> codes, const std::vector<double>& cells, double low,
                 double high) {
  REQUIRE(codes.size() == cells.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    const double place = std::clamp((std::log2(cells[i]) - low) / (high - low), 0.0, 1.0);
    const double code = cells[i] > 0 ? 1 + 254 * place : 0;
    CHECK(std::abs(static_cast<double>(codes[i]) - code) <= 0.51);
  }
}

}  // namespace

TEST_CASE("a report's numbers are those of stats") {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{}, {"--sample", "32"}, {"--layers", "1,3", "--heads", "0,2"}}) {
    std::vector<std::string> arguments{sample("moving-shapes")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Page page(arguments, folder / std::to_string(options.size()) + ".html");
    arguments.insert(arguments.begin(), "stats");
    const Json stats = heads_of(arguments);
    CHECK(page.answer["heads"] == stats);
    const Json& values = page.facts["heads"]["values"];
    for (size_t i = 0; i < stats.size(); ++i) {
      for (const auto& [name, column] : values.items()) CHECK(column[i] == stats[i][name]);
      CHECK(page.facts["heads"]["class"][i] == stats[i]["class"]);
    }
    CHECK(page.facts["sample"].is_null() == (options.empty() || options[0] != "--sample"));
  }
}

TEST_CASE("a report's maps, films and unlike heads are those of double precision") {
  const TemporaryFolder folder;
  AttentionCapture capture(5, 150);
  capture.file()
      .fact("grid", "3x6x8")
      .fact("text", "6@start")
      .fact("kind", "joint")
      .write(folder / "call.safetensors");
  const Page page({folder / "call.safetensors"}, folder / "page.html");
  const Json& maps = page.facts["maps"];
  const std::vector<std::byte> bytes = page.data("maps");
  const auto cells = maps["rows"].get<size_t>() * maps["cols"].get<size_t>();
  REQUIRE(maps["heads"].size() == 4);
  for (size_t h = 0; h < 4; ++h) {
    check_codes(std::span(bytes).subspan(h * cells, cells),
                cells_of(capture.weights(static_cast<int64_t>(h)), 150, 64), maps["low"][h],
                maps["high"][h]);
  }
  for (const Json& look : page.facts["looks"]) {
    const std::vector<double> map = capture.weights(look["head"].get<int64_t>());
    check_codes(page.data(look["map"]["data"]), cells_of(map, 150, 256), look["map"]["low"],
                look["map"]["high"]);
    const Json& film = look["film"];
    std::vector<double> entropies;
    for (int64_t i = 6; i < 150; ++i) {
      double entropy = 0;
      for (int64_t j = 0; j < 150; ++j) {
        const double w = map[static_cast<size_t>(i * 150 + j)];
        entropy -= w * std::log(w);
      }
      entropies.push_back(entropy);
    }
    const auto least = std::min_element(entropies.begin(), entropies.end());
    const int64_t token = 6 + (least - entropies.begin());
    CHECK(film["token"] == token);
    const int64_t cell = token - 6;
    CHECK(film["query"] == Json({cell / 48, cell % 48 / 8, cell % 8}));
    const std::vector<double> row(map.begin() + token * 150 + 6, map.begin() + (token + 1) * 150);
    check_codes(page.data(film["data"]), row, film["low"], film["high"]);
  }
  std::vector<double> unlike(4);
  for (int64_t a = 0; a < 4; ++a) {
    for (int64_t b = 0; b < 4; ++b) {
      if (a == b) continue;
      unlike[static_cast<size_t>(a)] += divergence(capture.weights(a), capture.weights(b), 150) / 3;
    }
  }
  const Json& rules = page.answer["stands_out"];
  const auto own = std::find_if(rules.begin(), rules.end(),
                                [](const Json& rule) { return rule["rule"] == "own_way"; });
  REQUIRE(own != rules.end());
  REQUIRE((*own)["heads"].size() == 3);
  double before = 1;
  for (const Json& head : (*own)["heads"]) {
    const double value = head["value"];
    CHECK(value == Approx(unlike[head["head"].get<size_t>()]).epsilon(1e-4));
    CHECK(value <= before);
    before = value;
  }
}

TEST_CASE("the heads that stand out are the three of largest value") {
  const TemporaryFolder folder;
  const Page page({sample("moving-shapes")}, folder / "page.html");
  const Json& heads = page.answer["heads"];
  for (const Json& rule : page.answer["stands_out"]) {
    const std::string name = rule["rule"];
    if (name == "own_way") continue;
    std::vector<double> values;
    for (const Json& head : heads) {
      double value = 0;
      if (name == "sink_mass") {
        for (const Json& sink : head["sinks"]) value += sink["mass"].get<double>();
      } else {
        value = head[name];
      }
      values.push_back(value);
    }
    std::sort(values.begin(), values.end(), std::greater<>());
    REQUIRE(rule["heads"].size() == 3);
    for (size_t i = 0; i < 3; ++i) CHECK(rule["heads"][i]["value"] == Approx(values[i]));
  }
  CHECK(page.answer["stands_out"].size() == 4);
  CHECK(page.facts["pictures"].size() == 7);
  CHECK(page.facts["looks"].size() >= 3);
  CHECK(page.answer["problems"].empty());
  CHECK(page.answer["bytes"] == page.text.size());
  CHECK(page.text.size() < 3'000'000);
}

TEST_CASE("a report has the same bytes whatever the threads, the memory and the folder") {
  const TemporaryFolder folder, elsewhere;
  std::filesystem::copy(sample("moving-shapes"), elsewhere.path() / "moving-shapes");
  const Page one({sample("moving-shapes"), "--threads", "1"}, folder / "page.html");
  const Page other({elsewhere / "moving-shapes", "--threads", "3", "--memory", "64MiB"},
                   elsewhere / "page.html");
  CHECK(one.text == other.text);
  CHECK(one.text.find(folder.path().string()) == std::string::npos);
  const std::string parent = std::filesystem::path(sample("moving-shapes")).parent_path();
  CHECK(one.text.find(parent) == std::string::npos);
}

TEST_CASE("a report is never larger than it may be, and says what it left out") {
  const TemporaryFolder folder;
  const Page whole({sample("moving-shapes")}, folder / "whole.html");
  CHECK(!has_line(whole.answer["lacks"], "left out"));
  int64_t last = std::ssize(whole.text);
  for (const int64_t most : {900'000, 500'000, 300'000}) {
    const Page page({sample("moving-shapes"), "--max-size", std::to_string(most) + "B"},
                    folder / std::to_string(most) + ".html");
    CHECK(std::ssize(page.text) <= most);
    CHECK(std::ssize(page.text) < last);
    CHECK(page.answer["heads"] == whole.answer["heads"]);
    CHECK(!page.answer["lacks"].empty());
    last = std::ssize(page.text);
  }
  const auto none = run_attnscope(
      {"report", sample("moving-shapes"), "--max-size", "10KB", "-o", folder / "none.html"});
  CHECK(none.exit_code == 2);
  CHECK(none.err.find("--max-size 10KB") != std::string::npos);
  CHECK(!std::filesystem::exists(folder / "none.html"));
}

TEST_CASE("a report whose time is over lists the heads that it did not reach") {
  const TemporaryFolder folder;
  const Page page({sample("moving-shapes"), "--budget-time", "0s"}, folder / "page.html");
  CHECK(page.answer["heads"].empty());
  CHECK(page.answer["not_reached"].size() == 16);
  CHECK(page.facts["not_reached"].size() == 16);
  CHECK(has_line(page.answer["lacks"], "--budget-time was over"));
}

TEST_CASE("an interrupted report leaves nothing") {
  const TemporaryFolder folder, elsewhere;
  std::vector<std::string> arguments{"report", sample("moving-shapes"), "--quiet", "-o"};
  auto whole = arguments;
  whole.push_back(elsewhere / "page.html");
  const long reads = calls_of(whole, "stop-read");
  for (const long at : {reads / 4, reads / 2, 3 * reads / 4}) {
    auto stopped = arguments;
    stopped.push_back(folder / "page.html");
    const auto result = run_attnscope(stopped, with_fault("stop-read", at));
    INFO(result.err);
    CHECK(result.exit_code == 4);
    CHECK(std::filesystem::is_empty(folder.path()));
  }
}

TEST_CASE("a damaged file costs a report its own call") {
  const TemporaryFolder folder;
  const std::string dump = folder / "dump";
  std::filesystem::copy(sample("moving-shapes"), dump);
  std::filesystem::resize_file(dump + "/step10_layer02.safetensors", 100);
  const Page page({dump}, folder / "page.html");
  CHECK(page.answer["heads"].size() == 12);
  REQUIRE(page.answer["problems"].size() == 1);
  CHECK(has_line(page.answer["problems"], "step10_layer02.safetensors"));
  CHECK(!has_line(page.answer["problems"], folder.path().string()));
  CHECK(page.facts["problems"] == page.answer["problems"]);
}

TEST_CASE("a head with NaN costs a report itself") {
  const TemporaryFolder folder;
  AttentionCapture capture(9, 40);
  capture.q[40 * 8 + 3] = std::nanf("");
  capture.file().write(folder / "call.safetensors");
  const Page page({folder / "call.safetensors"}, folder / "page.html");
  CHECK(page.answer["heads"].size() == 3);
  REQUIRE(page.answer["problems"].size() == 1);
  CHECK(has_line(page.answer["problems"], "head 1"));
}

TEST_CASE("inputs that lack something have a report that says so") {
  const TemporaryFolder folder;
  const auto page_of = [&](const CallFile& file, const std::string& name) {
    file.write(folder / name + ".safetensors");
    return Page({folder / name + ".safetensors"}, folder / name + ".html");
  };
  SECTION("one token") {
    const Page page = page_of(CallFile().pair({1, 2, 1, 4}, {1, 2, 1, 4}), "one");
    CHECK(page.answer["heads"].size() == 2);
    CHECK(has_line(page.answer["lacks"], "grid"));
  }
  SECTION("masked rows") {
    AttentionCapture capture(3, 20);
    capture.allowed.assign(400, 1);
    std::fill(capture.allowed.begin() + 40, capture.allowed.begin() + 80, 0);
    const Page page = page_of(capture.file(), "masked");
    CHECK(page.answer["heads"][0]["masked_rows"] == 2);
    const std::vector<std::byte> maps = page.data("maps");
    check_codes(std::span(maps).first(400), capture.weights(0), page.facts["maps"]["low"][0],
                page.facts["maps"]["high"][0]);
  }
  SECTION("cross attention") {
    const Page page =
        page_of(CallFile().pair({1, 2, 24, 4}, {1, 2, 5, 4}).fact("kind", "cross"), "cross");
    CHECK(page.facts["maps"]["rows"] == 24);
    CHECK(page.facts["maps"]["cols"] == 5);
    CHECK(page.facts["looks"].empty() == page.answer["stands_out"].empty());
  }
  SECTION("sigmoid scores") {
    AttentionCapture capture(4, 30);
    capture.file().write(folder / "sigmoid.safetensors");
    const Page page({folder / "sigmoid.safetensors", "--score", "sigmoid"},
                    folder / "sigmoid.html");
    CHECK(page.answer["heads"][0]["entropy"].is_null());
    CHECK(has_line(page.answer["lacks"], "do not add up to 1"));
  }
  SECTION("several shapes, steps and branches") {
    const std::string dump = folder / "dump";
    run_well({"synth", "--grid", "4x4x4", "--text", "4@start", "--layers", "2", "--heads", "2",
              "--steps", "2", "-o", dump});
    const Page page({dump}, folder / "dump.html");
    CHECK(page.answer["heads"].size() == 8);
    CHECK(page.facts["heads"]["names"][0].get<std::string>().front() == 'S');
  }
}

TEST_CASE("a table of numbers has a report") {
  const TemporaryFolder folder;
  for (const std::string ending : {".json", ".csv", ".h5"}) {
    const std::string table = folder / "stats" + ending;
    run_well({"stats", sample("moving-shapes"), "--quiet", "-o", table});
    const Page page({table}, folder / "page" + ending + ".html");
    const Json stats = heads_of({"stats", sample("moving-shapes")});
    REQUIRE(page.answer["heads"].size() == stats.size());
    for (size_t i = 0; i < stats.size(); ++i) {
      const double value = page.answer["heads"][i]["temporal_score"];
      CHECK(value == Approx(stats[i]["temporal_score"].get<double>()).epsilon(1e-6));
      CHECK(page.answer["heads"][i]["class"] == stats[i]["class"]);
    }
    CHECK(page.facts["subject"] == "table");
    CHECK(!page.facts.contains("maps"));
  }
}

TEST_CASE("a report that cannot be meant has one line") {
  const TemporaryFolder folder;
  const std::string dump = sample("moving-shapes");
  struct Case {
    std::vector<std::string> options;
    std::string words;
    int code = 2;
  };
  run_well({"export", dump, "--layers", "0", "--heads", "0", "-o", folder / "maps.h5"});
  for (const Case& each : std::vector<Case>{
           {{dump, "-o", folder / "page.txt"}, ".html"},
           {{dump, "-o", folder / "page.html", "--budget-time", "5 days"}, "--budget-time"},
           {{dump, "-o", folder / "page.html", "--budget-time=-1s"}, "--budget-time"},
           {{dump, "-o", folder / "page.html", "--max-size", "much"}, "--max-size"},
           {{dump, "-o", folder / "page.html", "--layers", "9"}, "layer"},
           {{dump, folder / "maps.h5", "-o", folder / "page.html"}, "two captures"},
           {{folder / "maps.h5", "-o", folder / "page.html", "--sample", "9"}, "export"},
           {{folder / "nothing", "-o", folder / "page.html"}, "nothing", 1},
           {{dump, "-o", folder / "no/page.html"}, "no", 1}}) {
    std::vector<std::string> arguments{"report"};
    arguments.insert(arguments.end(), each.options.begin(), each.options.end());
    const auto result = run_attnscope(arguments);
    INFO(result.err);
    CHECK(result.exit_code == each.code);
    CHECK(result.err.find(each.words) != std::string::npos);
    CHECK(!std::filesystem::exists(folder / "page.html"));
  }
}

TEST_CASE("an export has a report of what is in it") {
  const TemporaryFolder folder;
  const std::string maps = folder / "maps.h5";
  run_well({"export", sample("moving-shapes"), "--layers", "0,2", "--heads", "1", "-o", maps});
  const Page page({maps}, folder / "page.html");
  REQUIRE(page.answer["heads"].size() == 2);
  CHECK(page.answer["heads"][1]["layer"] == 2);
  CHECK(page.facts["checks"][0]["ok"] == true);
  CHECK(page.facts["checks"][1]["ok"] == true);
  CHECK(page.answer["problems"].empty());
}

TEST_CASE("two captures have a report of how far their heads are apart") {
  const TemporaryFolder folder;
  AttentionCapture one(5, 70), other(6, 70);
  one.file().fact("model", "left").write(folder / "one.safetensors");
  other.file().fact("model", "right").write(folder / "other.safetensors");
  const Page page({folder / "one.safetensors", folder / "other.safetensors"}, folder / "page.html");
  // What both have stands once; what they have not, one below the other.
  std::vector<std::string> told;
  for (const Json& line : page.facts["about"]) {
    told.push_back(line["label"].get<std::string>() + " " + line["text"].get<std::string>());
  }
  const auto place = [&](const std::string& text) {
    CHECK(std::count(told.begin(), told.end(), text) == 1);
    return std::find(told.begin(), told.end(), text) - told.begin();
  };
  CHECK(place("B: model right") == place("A: model left") + 1);
  place("heads 4");
  CHECK(std::none_of(told.begin(), told.end(),
                     [](const std::string& text) { return text.starts_with("A: heads"); }));
  REQUIRE(page.answer["heads"].size() == 8);
  REQUIRE(page.answer["pairs"].size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    const Json& pair = page.answer["pairs"][i];
    CHECK(pair["a"] == i);
    CHECK(pair["b"] == i + 4);
    const std::vector<double> a = one.weights(static_cast<int64_t>(i));
    const std::vector<double> b = other.weights(static_cast<int64_t>(i));
    double sum = 0;
    for (size_t e = 0; e < a.size(); ++e) {
      const double m = (a[e] + b[e]) / 2;
      sum += (a[e] * std::log2(a[e] / m) + b[e] * std::log2(b[e] / m)) / 2;
    }
    CHECK(pair["js"].get<double>() == Approx(sum / 70).epsilon(1e-4));
    CHECK(page.facts["heads"]["side"][i + 4] == 1);
  }
}

TEST_CASE("a report names numbers and rules in a few words, and quotes its input in commands") {
  const TemporaryFolder folder;
  std::filesystem::copy(sample("moving-shapes"), folder / "two words");
  const Page page({folder / "two words"}, folder / "page.html");
  for (const Json& number : page.facts["numbers"]) {
    CHECK(number["label"].get<std::string>().size() <= 32);
    CHECK(number["label"] != number["text"]);
  }
  REQUIRE(!page.facts["stands_out"].empty());
  for (const Json& rule : page.facts["stands_out"]) CHECK(rule["title"] != rule["text"]);
  for (const char* section : {"words", "sparsity"}) {
    if (!page.facts.contains(section)) continue;
    CHECK(page.facts[section]["command"].get<std::string>().find(" 'two words' ") !=
          std::string::npos);
  }
}

TEST_CASE("a dry run of a report writes nothing") {
  const TemporaryFolder folder;
  const Json plan = Json::parse(run_well({"report", sample("moving-shapes"), "-o",
                                          folder / "page.html", "--dry-run", "--json"})
                                    .out);
  CHECK(plan["heads"] == 16);
  CHECK(plan["file_bytes"].get<int64_t>() <= int64_t{8} << 20);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a dry run of a report counts the arithmetic of all its passes") {
  const TemporaryFolder folder;
  AttentionCapture(9, 40).file().write(folder / "call.safetensors");
  const auto flops = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "report");
    words.insert(words.end(), {"-o", folder / "page.html", "--dry-run", "--json"});
    return Json::parse(run_well(words).out).at("flops").get<double>();
  };
  // Numbers, small maps, the comparison of heads, masks and larger maps, and two of a figure.
  const double pass = 4.0 * 40 * 40 * 2 * 8;
  const std::string call = folder / "call.safetensors";
  CHECK(flops({call}) == Approx(7 * pass).epsilon(0.3));
  // Of two captures the same but masks and figures, and the rows of both that are compared.
  CHECK(flops({call, call}) == Approx(2 * (4 * pass + pass)).epsilon(0.3));
}

TEST_CASE("a dry run of a report of a table or an export tells how large the page will be") {
  const TemporaryFolder folder;
  run_well({"export", sample("moving-shapes"), "--layers", "0", "-o", folder / "maps.h5"});
  run_well({"stats", sample("moving-shapes"), "-o", folder / "stats.json"});
  for (const std::string& input : {folder / "maps.h5", folder / "stats.json"}) {
    const std::string page = input + ".html";
    const Json plan =
        Json::parse(run_well({"report", input, "-o", page, "--dry-run", "--json"}).out);
    CHECK(!std::filesystem::exists(page));
    run_well({"report", input, "-o", page});
    const int64_t bytes = std::ssize(read_bytes(page));
    CHECK(plan["file_bytes"].get<int64_t>() >= bytes);
    CHECK(plan["file_bytes"].get<int64_t>() <= bytes + 1024);
    CHECK(plan["flops"] == 0);
  }
}
