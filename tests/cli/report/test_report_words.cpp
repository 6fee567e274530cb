#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "cli/report/report_words.h"
#include "io/files/json_types.h"
#include "tests/cli/report/section_case.h"
#include "tests/support/attention_capture.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/png_picture.h"
#include "tests/support/project_paths.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kText = 7, kTokens = kText + 2 * 3 * 4;
constexpr const char* kStrings = R"(["[CLS]","a","dra","##gon",",","sky","[SEP]"])";

/// 7 text tokens before 2 frames of 3 x 4. Heads 0 and 1 look at the text, heads 2 and 3 do not.
AttentionCapture text_capture(uint64_t seed = 1) {
  AttentionCapture c(seed, kTokens);
  for (int64_t head = 0; head < c.heads; ++head) {
    for (int64_t i = 0; i < kTokens; ++i) {
      c.q[static_cast<size_t>((head * kTokens + i) * c.d)] = 2.5f;
    }
  }
  for (int64_t head = 0; head < c.kv_heads; ++head) {
    for (int64_t j = 0; j < kText; ++j) {
      c.k[static_cast<size_t>((head * kTokens + j) * c.d)] = head == 0 ? 3.0f : -3.0f;
    }
  }
  return c;
}

CallFile text_file(const AttentionCapture& c, const std::string& strings = kStrings) {
  CallFile file = c.file();
  file.fact("grid", "2x3x4").fact("text", "7@start").fact("layer", "5");
  if (!strings.empty()) file.fact("tokens", strings);
  return file;
}

struct Words {
  std::optional<ReportSection> section;
  std::vector<std::string> lacks;

  explicit Words(ReportWork work, double flops = kWordsFlops) {
    section = words_section(work, lacks, flops);
  }
  /// The weights that a strip's bytes mean.
  std::vector<double> strip(size_t n) const {
    const double high = section->facts["high"];
    std::vector<double> weights;
    REQUIRE(section->data[n].name == section->facts["strips"][n]["data"]);
    for (const std::byte code : section->data[n].bytes) {
      const int value = std::to_integer<int>(code);
      weights.push_back(value == 0 ? 0 : high * (value - 1) / 254);
    }
    return weights;
  }
};

/// Mean over these heads that see a row of what the keys get; NaN where all mask it.
std::vector<double> mean_weights(const AttentionCapture& c, const std::vector<int64_t>& heads,
                                 IndexRange keys, const std::vector<int64_t>& rows) {
  std::vector<double> means;
  std::vector<std::vector<double>> maps;
  for (const int64_t head : heads) maps.push_back(c.weights(head));
  for (const int64_t row : rows) {
    double sum = 0, live = 0;
    for (const std::vector<double>& map : maps) {
      double all = 0;
      for (int64_t j = 0; j < c.tokens; ++j) {
        const double weight = map[static_cast<size_t>(row * c.tokens + j)];
        all += weight;
        if (keys.contains(j)) sum += weight;
      }
      live += all > 0 ? 1 : 0;
    }
    means.push_back(sum / live);
  }
  return means;
}

std::vector<int64_t> video_rows() {
  std::vector<int64_t> rows;
  for (int64_t i = kText; i < kTokens; ++i) rows.push_back(i);
  return rows;
}

/// Empty where the strip is what the heads give the keys.
std::string wrong_strip(const Words& words, size_t n, const std::vector<double>& expected) {
  const OrderedJson& facts = words.section->facts["strips"][n];
  const double high = words.section->facts["high"];
  const std::vector<double> got = words.strip(n);
  if (got.size() != expected.size()) return "another size";
  double sum = 0, largest = 0, live = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i])) {
      if (std::to_integer<int>(words.section->data[n].bytes[i]) != 0) return "not masked";
      continue;
    }
    if (std::abs(got[i] - expected[i]) > high * (0.5 / 254 + 1e-5)) {
      return "cell " + std::to_string(i);
    }
    sum += expected[i];
    largest = std::max(largest, expected[i]);
    live += 1;
  }
  const double mass = facts["mass"], most = facts["largest"];
  if (std::abs(mass - sum / live) > 1e-5 * mass) return "mass " + std::to_string(mass);
  if (std::abs(most - largest) > 1e-5 * most) return "largest " + std::to_string(most);
  return "";
}

}  // namespace

TEST_CASE("report: strips of words are the mean over the heads that look at the text") {
  const TemporaryFolder folder;
  for (const bool masked : {false, true}) {
    INFO((masked ? "masked rows" : "all rows"));
    AttentionCapture c = text_capture();
    if (masked) {
      c.allowed.assign(static_cast<size_t>(kTokens * kTokens), 1);
      for (int64_t j = 0; j < kTokens; ++j) c.allowed[static_cast<size_t>(12 * kTokens + j)] = 0;
      for (int64_t j = 0; j < kText; ++j) c.allowed[static_cast<size_t>(20 * kTokens + j)] = 0;
    }
    const std::string path = folder / (masked ? "masked.safetensors" : "call.safetensors");
    text_file(c).write(path);
    SectionCase capture(path);
    const Words words(capture.work());
    CHECK(words.lacks.empty());
    REQUIRE(words.section);
    const OrderedJson& facts = words.section->facts;
    std::vector<int64_t> heads = facts["heads"];
    std::sort(heads.begin(), heads.end());
    CHECK(heads == std::vector<int64_t>{0, 1});
    CHECK(facts["grid"] == OrderedJson{2, 3, 4});
    CHECK(facts["frames"] == OrderedJson{nullptr, nullptr});
    REQUIRE(facts["strips"].size() == 3);
    const std::vector<std::pair<std::string, IndexRange>> expected{
        {"a", {1, 2}}, {"dragon", {2, 4}}, {"sky", {5, 6}}};
    double high = 0;
    for (size_t n = 0; n < expected.size(); ++n) {
      const OrderedJson& strip = facts["strips"][n];
      CHECK(strip["word"] == expected[n].first);
      CHECK(strip["token"] == expected[n].second.begin);
      CHECK(strip["tokens"] == expected[n].second.size());
      CHECK(wrong_strip(words, n, mean_weights(c, heads, expected[n].second, video_rows())) == "");
      high = std::max(high, strip["largest"].get<double>());
    }
    CHECK(facts["high"] == high);
    CHECK(facts["left_out"] == OrderedJson{"special tokens: [CLS] [SEP]", "punctuation: ,"});
    CHECK(contains(facts["command"], " --picture text --pick 5."));
  }
}

TEST_CASE("report: words that cost too much are of fewer heads, then of fewer cells") {
  CHECK(plan_words(8, 10, 30, 45, 1e9).heads == 8);
  CHECK(plan_words(8, 10, 30, 45, 1e9).stride == 1);
  CHECK(plan_words(8, 10, 30, 45, 35).heads == 3);
  CHECK(plan_words(8, 10, 30, 45, 35).stride == 1);
  CHECK(plan_words(8, 10, 30, 45, 19).heads == 2);
  CHECK(plan_words(8, 10, 30, 45, 19).stride == 2);
  CHECK(plan_words(1, 1000, 30, 45, 0).heads == 1);
  CHECK(plan_words(1, 1000, 30, 45, 0).stride == 45);

  const TemporaryFolder folder;
  const AttentionCapture c = text_capture();
  const std::string path = folder / "call.safetensors";
  text_file(c).write(path);
  SectionCase capture(path, 16);
  // Two heads of 24 rows and 31 keys of 8 channels.
  const Words words(capture.work(), 2 * 24 * 31 * 16 * 0.4);
  REQUIRE(words.section);
  CHECK(words.section->facts["grid"] == OrderedJson{2, 2, 2});
  CHECK(words.section->facts["stride"] == 2);
  CHECK(contains(words.section->facts["text"], "One in 2 rows and columns"));
  std::vector<int64_t> rows;
  for (const int64_t t : {0, 1}) {
    for (const int64_t y : {0, 2}) {
      for (const int64_t x : {0, 2}) rows.push_back(kText + t * 12 + y * 4 + x);
    }
  }
  const std::vector<int64_t> heads = words.section->facts["heads"];
  CHECK(heads.size() == 2);
  CHECK(wrong_strip(words, 1, mean_weights(c, heads, {2, 4}, rows)) == "");
}

TEST_CASE("report: words that are not there are said to be missing, and why") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  const auto why = [&](const CallFile& file) {
    file.write(path);
    SectionCase capture(path);
    const Words words(capture.work());
    CHECK_FALSE(words.section);
    REQUIRE(words.lacks.size() == 1);
    return words.lacks.front();
  };
  const AttentionCapture c = text_capture();
  CHECK(contains(why(c.file().fact("text", "7@start").fact("tokens", kStrings)), "on a grid"));
  CHECK(contains(why(AttentionCapture(1, 24).file().fact("grid", "2x3x4")), "text token"));
  CHECK(contains(why(text_file(c, "")), "no token strings"));
  CHECK(contains(why(text_file(c, R"(["[CLS]","<pad>",",",".","","","</s>"])")),
                 "special, padding or punctuation"));
  CHECK(contains(why(text_file(c).version(2).fact("score", "sigmoid")), "not normalised"));
  // Heads 2 and 3 of a model that has no others.
  AttentionCapture away = text_capture();
  for (float& value : away.k) value = -std::abs(value);
  for (int64_t head = 0; head < away.kv_heads; ++head) {
    for (int64_t j = 0; j < kText; ++j) {
      away.k[static_cast<size_t>((head * kTokens + j) * away.d)] = -3.0f;
    }
  }
  CHECK(contains(why(text_file(away)), "twice what it would have"));
  text_file(c).write(path);
  SectionCase capture(path);
  const Words none(capture.work(0));
  CHECK_FALSE(none.section);
  CHECK(lacks_text(none.lacks, "no time left"));
  const Words one(capture.work(1));
  REQUIRE(one.section);
  CHECK(one.section->facts["heads"].size() == 1);
  CHECK(lacks_text(one.lacks, "1 heads that were to be averaged"));
  SectionCase narrow(path, 0, 1 << 10);
  const Words small(narrow.work());
  CHECK_FALSE(small.section);
  CHECK(small.lacks.size() == 1);
}

TEST_CASE("report: words of cross attention, of one branch and of padded prompts") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  ReferenceCall call({2, 3, 3, 24, 6, 8}, 4);
  call.fact("grid", "2x3x4").fact("kind", "cross").fact("branches", R"(["uncond","cond"])");
  call.fact("text_valid", "[6,4]");
  call.fact("tokens", R"([["▁a","▁b","▁c","▁d","▁e","▁f"],["▁red","▁cat","▁red","</s>","",""]])");
  call.write(path);
  SectionCase capture(path);
  const Words words(capture.work());
  REQUIRE(words.section);
  const OrderedJson& facts = words.section->facts;
  REQUIRE(facts["heads"].size() == 3);
  std::vector<int64_t> heads;
  for (const int64_t place : facts["heads"].get<std::vector<int64_t>>()) {
    const HeadName& name = capture.records()[static_cast<size_t>(place)].name;
    CHECK(name.branch == "cond");
    heads.push_back(name.head);
  }
  REQUIRE(facts["strips"].size() == 3);
  CHECK(facts["strips"][0]["word"] == "red");
  CHECK(facts["strips"][2]["word"] == "red");
  CHECK(facts["strips"][2]["token"] == 2);
  CHECK(facts["left_out"] == OrderedJson{"special tokens: </s>", "padding: 2 tokens"});
  CHECK(contains(facts["text"], "branch uncond are left out"));
  CHECK(contains(facts["command"], " --branch cond --batch 1 "));
  std::vector<double> expected;
  for (int64_t i = 0; i < 24; ++i) {
    double sum = 0;
    for (const int64_t head : heads) sum += call.row(1, head, i)[2];
    expected.push_back(sum / 3);
  }
  CHECK(wrong_strip(words, 2, expected) == "");
}

TEST_CASE("report: of many words those that get most have strips") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  std::string strings;
  for (int i = 0; i < 60; ++i) strings += (i == 0 ? "\"▁w" : ",\"▁w") + std::to_string(i) + "\"";
  ReferenceCall call({1, 2, 2, 24, 60, 8}, 4);
  call.fact("grid", "2x3x4").fact("kind", "cross").fact("tokens", "[" + strings + "]").write(path);
  SectionCase capture(path);
  const Words words(capture.work());
  REQUIRE(words.section);
  const OrderedJson& strips = words.section->facts["strips"];
  REQUIRE(strips.size() == 40);
  CHECK(words.section->data.size() == 40);
  CHECK(words.section->facts["left_out"] ==
        OrderedJson{"words: 20 that get less than the 40 that are shown"});
  std::vector<double> masses;
  for (size_t w = 0; w < 60; ++w) {
    double sum = 0;
    for (int64_t i = 0; i < 24; ++i) sum += call.row(0, 0, i)[w] + call.row(0, 1, i)[w];
    masses.push_back(sum / 48);
  }
  std::vector<double> sorted = masses;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  int64_t before = -1;
  for (const OrderedJson& strip : strips) {
    const int64_t token = strip["token"];
    CHECK(token > before);
    CHECK(masses[static_cast<size_t>(token)] >= sorted[39]);
    before = token;
  }
}

TEST_CASE("report: the sample's words are found where their things are") {
  const std::string sample = project_folder() + "/samples/moving-shapes";
  SectionCase capture(sample);
  const Words words(capture.work());
  REQUIRE(words.section);
  const OrderedJson& strips = words.section->facts["strips"];
  const auto strip_of = [&](const std::string& word) {
    for (size_t n = 0; n < strips.size(); ++n) {
      if (strips[n]["word"] == word) return words.strip(n);
    }
    return std::vector<double>();
  };
  const std::vector<double> red = strip_of("red"), blue = strip_of("blue");
  REQUIRE(red.size() == size_t{7} * 12 * 12);
  REQUIRE(blue.size() == red.size());
  // A patch of 2 x 2 pixels is one token: which of them are the red thing, which the blue one?
  double red_there = 0, red_away = 0, blue_there = 0, blue_away = 0;
  int64_t reds = 0, blues = 0;
  for (int t = 0; t < 7; ++t) {
    const Picture frame = read_png(sample + "/frame" + std::to_string(t) + ".png");
    for (int y = 0; y < 12; ++y) {
      for (int x = 0; x < 12; ++x) {
        const Rgb pixel = frame.at(2 * x, 2 * y);
        const auto at = static_cast<size_t>((t * 12 + y) * 12 + x);
        const bool is_red = pixel.r > pixel.b + 60 && pixel.r > pixel.g + 60;
        const bool is_blue = pixel.b > pixel.r + 60 && pixel.b > pixel.g + 60;
        reds += is_red ? 1 : 0;
        blues += is_blue ? 1 : 0;
        (is_red ? red_there : red_away) += red[at];
        (is_blue ? blue_there : blue_away) += blue[at];
      }
    }
  }
  const auto cells = static_cast<double>(red.size());
  REQUIRE(reds > 50);
  REQUIRE(blues > 50);
  const double red_lift =
      red_there / static_cast<double>(reds) / (red_away / (cells - static_cast<double>(reds)));
  const double blue_lift =
      blue_there / static_cast<double>(blues) / (blue_away / (cells - static_cast<double>(blues)));
  CAPTURE(red_lift, blue_lift);
  CHECK(red_lift > 1.2);
  CHECK(blue_lift > 1.2);
}
