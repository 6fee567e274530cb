#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/report/report_sparsity.h"
#include "cli/report/sparsity_facts.h"
#include "core/base/number_words.h"
#include "core/problem/sampled_rows.h"
#include "io/files/json_types.h"
#include "tests/cli/report/section_case.h"
#include "tests/support/attention_capture.h"
#include "tests/support/catch.h"
#include "tests/support/head_records.h"
#include "tests/support/helpers.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr std::array<double, 3> kKeep{0.1, 0.2, 0.3};

struct Sparsity {
  std::optional<ReportSection> section;
  std::vector<std::string> lacks;

  explicit Sparsity(ReportWork work) { section = sparsity_section(work, lacks); }
  const OrderedJson& operator[](const char* name) const { return section->facts.at(name); }
};

bool is_near(const OrderedJson& got, double expected, double tolerance = 1e-5) {
  return got.is_number() &&
         std::abs(got.get<double>() - expected) <= tolerance * std::abs(expected) + 1e-9;
}

struct KeptMass {
  double density = 0, blocks = 0, entries = 0;
};

/// What the key blocks with the largest mean query times mean key keep of a head's sampled rows,
/// and as many single entries: by the definitions, in double.
KeptMass kept_mass(const AttentionCapture& c, int64_t head, int64_t block, double keep) {
  const int64_t blocks = (c.tokens + block - 1) / block;
  const auto mean = [&](const std::vector<float>& rows, int64_t plane, int64_t b, int64_t channel) {
    const int64_t end = std::min(c.tokens, (b + 1) * block);
    double sum = 0;
    for (int64_t i = b * block; i < end; ++i) {
      sum += double{rows[static_cast<size_t>((plane * c.tokens + i) * c.d + channel)]};
    }
    return sum / static_cast<double>(end - b * block);
  };
  const auto count = static_cast<size_t>(std::ceil(keep * static_cast<double>(blocks) - 1e-9));
  const std::vector<double> map = c.weights(head);
  const std::vector<int64_t> rows = sampled_rows(c.tokens, 256);
  KeptMass kept;
  for (const int64_t row : rows) {
    std::vector<std::pair<double, int64_t>> scores;
    for (int64_t b = 0; b < blocks; ++b) {
      double score = 0;
      for (int64_t x = 0; x < c.d; ++x) {
        score += mean(c.q, head, row / block, x) * mean(c.k, c.kv_head(head), b, x);
      }
      scores.emplace_back(-score, b);
    }
    std::sort(scores.begin(), scores.end());
    std::vector<double> weights(map.begin() + row * c.tokens, map.begin() + (row + 1) * c.tokens);
    size_t entries = 0;
    for (size_t i = 0; i < count; ++i) {
      for (int64_t j = scores[i].second * block;
           j < std::min(c.tokens, (scores[i].second + 1) * block); ++j) {
        kept.blocks += weights[static_cast<size_t>(j)];
        ++entries;
      }
    }
    std::sort(weights.begin(), weights.end(), std::greater<>());
    kept.entries +=
        std::accumulate(weights.begin(), weights.begin() + static_cast<int64_t>(entries), 0.0);
    kept.density += static_cast<double>(entries) / static_cast<double>(c.tokens);
  }
  const auto n = static_cast<double>(rows.size());
  return {kept.density / n, kept.blocks / n, kept.entries / n};
}

/// Mean over rows that see a key of how many of the largest weights hold the share.
double keys_for(const AttentionCapture& c, int64_t head, double share) {
  const std::vector<double> map = c.weights(head);
  double sum = 0, live = 0;
  for (int64_t i = 0; i < c.tokens; ++i) {
    std::vector<double> row(map.begin() + i * c.tokens, map.begin() + (i + 1) * c.tokens);
    std::sort(row.begin(), row.end(), std::greater<>());
    if (row.front() == 0) continue;
    double mass = 0;
    int64_t keys = 0;
    while (mass < share && keys < c.tokens) mass += row[static_cast<size_t>(keys++)];
    sum += static_cast<double>(keys);
    live += 1;
  }
  return sum / live;
}

}  // namespace

TEST_CASE("report: what blocks and entries keep is what direct sums say") {
  const TemporaryFolder folder;
  const AttentionCapture c(3, 300);
  const std::string path = folder / "call.safetensors";
  c.file().fact("layer", "2").write(path);
  SectionCase capture(path);
  const Sparsity sparsity(capture.work());
  REQUIRE(sparsity.section);
  REQUIRE(sparsity["kept"].size() == 3);
  REQUIRE(sparsity["kept_by_layer"].size() == 1);
  const OrderedJson& layer = sparsity["kept_by_layer"][0];
  CHECK(layer["layer"] == 2);
  CHECK(layer["name"] == "layer 2");
  for (size_t i = 0; i < kKeep.size(); ++i) {
    INFO("keep " << kKeep[i]);
    KeptMass mean;
    double worst = 1;
    int64_t worst_head = -1;
    for (int64_t head = 0; head < c.heads; ++head) {
      const KeptMass kept = kept_mass(c, head, 16, kKeep[i]);
      mean.density += kept.density / 4;
      mean.blocks += kept.blocks / 4;
      mean.entries += kept.entries / 4;
      if (kept.blocks < worst) {
        worst = kept.blocks;
        worst_head = capture.records()[static_cast<size_t>(head)].name.head;
      }
    }
    const OrderedJson& kept = sparsity["kept"][i];
    CHECK(kept["keep"] == kKeep[i]);
    CHECK(is_near(kept["density"], mean.density));
    CHECK(is_near(kept["blocks"]["recall"], mean.blocks));
    CHECK(is_near(kept["blocks"]["worst"], worst));
    CHECK(kept["blocks"]["worst_head"] == worst_head);
    CHECK(is_near(kept["entries"]["recall"], mean.entries));
    CHECK(is_near(layer["blocks"][i], mean.blocks));
    CHECK(is_near(layer["entries"][i], mean.entries));
  }
  CHECK(contains(sparsity["text"], "blocks of 16 \u00d7 16 tokens"));
  CHECK(sparsity["command"] == "attnscope mask call.safetensors --mask topk:block=16,keep=0.1");
  // Nothing says what these tokens are.
  CHECK(sparsity["padding"].is_null());
  CHECK(lacks_text(sparsity.lacks, "padding"));
  CHECK(lacks_text(sparsity.lacks, "frame"));
  CHECK_FALSE(sparsity.section->facts.contains("frames"));
}

TEST_CASE("report: curves are shares of the keys that rows may see") {
  const TemporaryFolder folder;
  for (const bool causal : {false, true}) {
    INFO((causal ? "causal" : "all keys"));
    AttentionCapture c(5, 60);
    double seen = 60;
    if (causal) {
      // Row 7 sees nothing.
      for (int64_t i = 0; i < 60; ++i) {
        for (int64_t j = 0; j < 60; ++j) c.allowed.push_back(j <= i && i != 7 ? 1 : 0);
      }
      seen = (60.0 * 61 / 2 - 8) / 59;
    }
    const std::string path = folder / "call.safetensors";
    c.file().fact("layer", "0").write(path);
    SectionCase capture(path);
    const Sparsity sparsity(capture.work());
    REQUIRE(sparsity.section);
    REQUIRE(sparsity["curves"].size() == 1);
    const OrderedJson& curve = sparsity["curves"][0];
    CHECK(curve["recall"] == OrderedJson{0.5, 0.8, 0.9, 0.95, 0.99});
    for (size_t i = 0; i < 5; ++i) {
      double keys = 0;
      for (int64_t head = 0; head < 4; ++head) {
        keys += keys_for(c, head, curve["recall"][i]) / 4;
      }
      CHECK(is_near(curve["keys"][i], keys, 2e-3));
      CHECK(is_near(curve["density"][i], keys / seen, 2e-3));
    }
  }
}

TEST_CASE("report: masses from frame to frame and on padding are means over heads") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  ReferenceCall call({1, 2, 2, 30, 30, 8}, 9);
  call.fact("grid", "2x3x4").fact("text", "6@start").fact("text_valid", "4").write(path);
  SectionCase capture(path);
  const Sparsity sparsity(capture.work());
  REQUIRE(sparsity.section);
  const OrderedJson& frames = sparsity["frames"];
  CHECK(frames["names"] == OrderedJson{"text", "t0", "t1"});
  const std::array<IndexRange, 3> parts{{{0, 6}, {6, 18}, {18, 30}}};
  double padding = 0;
  for (size_t from = 0; from < 3; ++from) {
    for (size_t to = 0; to < 3; ++to) {
      double sum = 0;
      for (const int64_t head : {0, 1}) {
        for (int64_t i = parts[from].begin; i < parts[from].end; ++i) {
          const std::vector<double> row = call.row(0, head, i);
          for (int64_t j = parts[to].begin; j < parts[to].end; ++j) {
            sum += row[static_cast<size_t>(j)];
          }
          if (from > 0 && to == 0) padding += row[4] + row[5];
        }
      }
      CHECK(is_near(frames["mean"][from][to], sum / 2 / static_cast<double>(parts[from].size())));
    }
  }
  const OrderedJson& text = sparsity["padding"]["text"];
  CHECK(contains(text, "give " + share_words(padding / 48, 2) + " of a row"));
}

TEST_CASE("report: sinks are named, the heaviest first") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  AttentionCapture c(2, 30);
  for (int64_t head = 0; head < c.heads; ++head) {
    for (int64_t i = 0; i < 30; ++i) c.q[static_cast<size_t>((head * 30 + i) * c.d)] = 2.5f;
  }
  // Text 1 for heads 0 and 1, the video's (1, 0, 2) for heads 2 and 3.
  c.k[static_cast<size_t>(1 * c.d)] = 5;
  c.k[static_cast<size_t>((30 + 6 + 12 + 2) * c.d)] = 6;
  c.file()
      .fact("grid", "2x3x4")
      .fact("text", "6@start")
      .fact("tokens", R"(["▁a","▁cat","▁on","▁a","▁mat","</s>"])")
      .write(path);
  SectionCase capture(path);
  const Sparsity sparsity(capture.work());
  REQUIRE(sparsity.section);
  const OrderedJson& sinks = sparsity["sinks"];
  REQUIRE(sinks.size() == 4);
  double before = 1;
  for (const OrderedJson& sink : sinks) {
    const auto place = sink["head"].get<size_t>();
    const int64_t head = capture.records()[place].name.head;
    CHECK(sink["keys"][0]["name"] == (head < 2 ? "text 1 “cat”" : "(1, 0, 2)"));
    CHECK(sink["keys"][0]["key"] == (head < 2 ? 1 : 20));
    const std::vector<double> map = c.weights(head);
    double mass = 0;
    for (int64_t i = 0; i < 30; ++i) mass += map[static_cast<size_t>(i * 30 + (head < 2 ? 1 : 20))];
    CHECK(is_near(sink["keys"][0]["mass"], mass / 30));
    CHECK(sink["keys"][0]["mass"] <= before);
    before = sink["keys"][0]["mass"];
  }
}

TEST_CASE("report: what is not defined or had no time is missing, never 0") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  const AttentionCapture c(3, 40);
  c.file().version(2).fact("score", "sigmoid").write(path);
  {
    SectionCase capture(path);
    const Sparsity sparsity(capture.work());
    CHECK(lacks_text(sparsity.lacks, "not what sparse masks keep"));
    CHECK_FALSE(sparsity.section);
  }
  c.file().write(path);
  SectionCase capture(path);
  const Sparsity none(capture.work(0));
  REQUIRE(none.section);
  CHECK_FALSE(none.section->facts.contains("kept"));
  CHECK(lacks_text(none.lacks, "no time left"));
  const Sparsity some(capture.work(3));
  REQUIRE(some.section);
  CHECK(some["kept_by_layer"][0]["heads"] == 3);
  CHECK(lacks_text(some.lacks, "is of 3 heads, 1 more had no time left"));
  SectionCase narrow(path, 0, 1 << 10);
  const Sparsity small(narrow.work());
  REQUIRE(small.section);
  CHECK(lacks_text(small.lacks, "not what sparse masks keep"));
  // All rows masked: nothing is known of them.
  AttentionCapture masked(3, 40);
  masked.allowed.assign(40 * 40, 0);
  masked.file().write(path);
  SectionCase dark(path);
  const Sparsity nothing(dark.work());
  CHECK_FALSE(nothing.section);
  CHECK(nothing.lacks.size() >= 2);
  // One token sees itself.
  AttentionCapture(1, 1).file().write(path);
  SectionCase lone(path);
  const Sparsity single(lone.work());
  REQUIRE(single.section);
  CHECK(is_near(single["kept"][0]["blocks"]["recall"], 1));
  CHECK(is_near(single["kept"][0]["density"], 1));
  CHECK(is_near(single["curves"][0]["density"][4], 1));
}

TEST_CASE("report: layers are told by what tells their attentions apart") {
  std::vector<HeadRecord> records;
  const auto add = [&](int64_t step, int64_t layer, const char* kind, const char* block,
                       const char* slot) {
    HeadRecord record = sample_record(std::ssize(records), false);
    record.name.step = step;
    record.name.layer = layer;
    record.name.kind = kind;
    record.name.place = {};
    record.name.place.block = block;
    record.name.place.slot = slot;
    records.push_back(record);
  };
  add(1, 0, "joint", "", "");
  add(2, 0, "joint", "", "");
  add(1, 1, "self", "blocks.1", "attn1");
  add(1, 1, "cross", "blocks.1", "attn2");
  add(1, kNoLayer, "self", "refiner.0", "attn");
  const std::vector<LayerHeads> layers = heads_by_layer(records);
  REQUIRE(layers.size() == 4);
  CHECK(layers[0].name == "layer 0");
  CHECK(layers[0].heads == std::vector<size_t>{0, 1});
  CHECK(layers[1].name == "layer 1 blocks.1.attn1 self");
  CHECK(layers[2].name == "layer 1 blocks.1.attn2 cross");
  CHECK(layers[3].name == "refiner.0.attn");
  CHECK_FALSE(layers[3].layer);
  // A table alone says keys, and no shares of them.
  std::vector<std::string> lacks;
  const auto section = sparsity_of_records(records, lacks);
  REQUIRE(section);
  const OrderedJson& curve = section->facts["curves"][0];
  CHECK_FALSE(curve.contains("density"));
  CHECK(
      is_near(curve["keys"][1],
              (*records[0].metrics.keys_for_80.value + *records[1].metrics.keys_for_80.value) / 2));
  CHECK(lacks_text(lacks, "not what sparse masks keep"));
  CHECK(spread_places(5, 9) == std::vector<size_t>{0, 1, 2, 3, 4});
  CHECK(spread_places(9, 3) == std::vector<size_t>{0, 4, 8});
  CHECK(spread_places(4, 1) == std::vector<size_t>{0});
  CHECK(spread_places(0, 2).empty());
}
