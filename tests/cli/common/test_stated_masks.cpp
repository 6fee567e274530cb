// Masks that a capture states by less than their entries: every number is that of the same mask
// given entry by entry.
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program.h"
#include "tests/support/reference_call.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kBatch = 2, kHeads = 4, kTokens = 301;

using Entries = std::function<bool(int64_t batch, int64_t head, int64_t query, int64_t key)>;

/// A mask as a capture states it, and which entries it keeps.
struct StatedMask {
  std::string fact;
  std::function<void(ReferenceCall&)> add;
  Entries kept;
};

/// Video, then a mixture, then padding; the second item has more of it.
bool is_valid(int64_t batch, int64_t token) {
  return token < 130 ? token != 17 : token < 250 - 40 * batch && token % 5 != batch;
}

int64_t segment_of(int64_t batch, int64_t token) {
  return token < 200 ? token / (60 + batch) : token % 2 - 1;
}

bool has_block(int64_t batch, int64_t head, int64_t row, int64_t column) {
  return (row * 7 + column * 3 + head + batch) % 4 != 1 && row != 2;
}

std::vector<StatedMask> stated_masks() {
  const auto valid = [](ReferenceCall& call) {
    std::string bits;
    for (int64_t b = 0; b < kBatch; ++b) {
      for (int64_t t = 0; t < kTokens; ++t) bits += static_cast<char>(is_valid(b, t));
    }
    call.tensor("mask_valid", "BOOL", {kBatch, kTokens}, bits);
  };
  const auto segments = [](ReferenceCall& call) {
    std::vector<int64_t> numbers;
    for (int64_t b = 0; b < kBatch; ++b) {
      for (int64_t t = 0; t < kTokens; ++t) numbers.push_back(segment_of(b, t));
    }
    call.tensor("mask_segments", "I64", {kBatch, kTokens}, raw(numbers));
  };
  const auto blocks = [](ReferenceCall& call) {
    std::string bits;
    for (int64_t b = 0; b < kBatch; ++b) {
      for (int64_t h = 0; h < kHeads; ++h) {
        for (int64_t i = 0; i < 5; ++i) {
          for (int64_t j = 0; j < 3; ++j) bits += static_cast<char>(has_block(b, h, i, j));
        }
      }
    }
    call.tensor("mask_blocks", "BOOL", {kBatch, kHeads, 5, 3}, bits).fact("mask_block", "64x128");
  };
  return {{"valid", valid, [](auto b, auto, auto, auto j) { return is_valid(b, j); }},
          {"valid_pairs", valid,
           [](auto b, auto, auto i, auto j) { return is_valid(b, i) && is_valid(b, j); }},
          {"segments", segments,
           [](auto b, auto, auto i, auto j) { return segment_of(b, i) == segment_of(b, j); }},
          {"block_causal:75", [](ReferenceCall&) {},
           [](auto, auto, auto i, auto j) { return j / 75 <= i / 75; }},
          {"blocks", blocks,
           [](auto b, auto h, auto i, auto j) { return has_block(b, h, i / 64, j / 128); }}};
}

ReferenceCall random_call() { return {{kBatch, kHeads, 2, kTokens, kTokens, 8}, 5}; }

std::string dense_bits(const Entries& kept) {
  std::string bits;
  bits.reserve(static_cast<size_t>(kBatch * kHeads * kTokens * kTokens));
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t h = 0; h < kHeads; ++h) {
      for (int64_t i = 0; i < kTokens; ++i) {
        for (int64_t j = 0; j < kTokens; ++j) bits += static_cast<char>(kept(b, h, i, j));
      }
    }
  }
  return bits;
}

std::string run(std::vector<std::string> arguments) {
  const ProgramResult result = run_attnscope(arguments);
  INFO(arguments.front() << ": " << result.err);
  REQUIRE(result.exit_code == 0);
  return result.out;
}

/// Both captures of one mask, and what commands make of them.
struct Pair {
  const TemporaryFolder folder;
  const std::string stated = folder / "stated.safetensors", dense = folder / "dense.safetensors";

  explicit Pair(const StatedMask& mask) {
    ReferenceCall call = random_call();
    mask.add(call.version(2).fact("mask", mask.fact));
    call.write(stated);
    random_call()
        .tensor("mask", "BOOL", {kBatch, kHeads, kTokens, kTokens}, dense_bits(mask.kept))
        .fact("mask", "tensor")
        .write(dense);
  }

  /// The values of an export's datasets, by name.
  std::map<std::string, std::vector<double>> exported(const std::string& capture,
                                                      std::vector<std::string> options) const {
    const std::string out = folder / "out.h5";
    options.insert(options.begin(), {"export", capture, "-o", out, "--force", "--quiet"});
    run(options);
    std::map<std::string, std::vector<double>> values;
    const std::string group = "/calls/" + group_members(out, "/calls").front() + "/";
    for (const std::string& name : group_members(out, group)) {
      if (name != "checksums") values[name] = read_dataset(out, group + name).values;
    }
    return values;
  }
};

}  // namespace

TEST_CASE("a stated mask and its entries give the same bits in every product") {
  for (const StatedMask& mask : stated_masks()) {
    const Pair pair(mask);
    for (const std::string backend : {"cpu", "reference"}) {
      INFO(mask.fact << ", backend " << backend);
      const std::vector<std::vector<std::string>> exports{
          {"--dtype", "f32"},
          {"--dtype", "f32", "--rows", "37:290", "--cols", "5:299"},
          {"--product", "logits", "--dtype", "f32"},
          {"--product", "pooled", "--block", "32"},
          {"--topk", "20"},
          {"--product", "output", "--dtype", "f32"}};
      for (std::vector<std::string> options : exports) {
        options.insert(options.end(), {"--backend", backend});
        const auto of_stated = pair.exported(pair.stated, options);
        CHECK(!of_stated.empty());
        CHECK(of_stated == pair.exported(pair.dense, options));
      }
      const auto stats = [&](const std::string& capture) {
        return Json::parse(
            run({"stats", capture, "--json", "--backend", backend, "--quiet"}))["heads"];
      };
      const Json heads = stats(pair.stated);
      CHECK(heads.size() == kBatch * kHeads);
      CHECK(heads == stats(pair.dense));
      const auto query = [&](const std::string& capture, const std::string& end) {
        const std::string out = pair.folder / "query.csv";
        run({"query", capture, "--index", "140", end, "-o", out, "--force", "--backend", backend,
             "--quiet"});
        return read_file(out);
      };
      for (const std::string end : {"--heads=0-3", "--reverse"}) {
        CHECK(query(pair.stated, end) == query(pair.dense, end));
      }
    }
  }
}

TEST_CASE("stated masks agree with double precision, and rows without keys are masked rows") {
  for (const StatedMask& mask : stated_masks()) {
    INFO(mask.fact);
    const Pair pair(mask);
    const auto weights = pair.exported(pair.stated, {"--dtype", "f32"}).at("weights");
    const Json heads = Json::parse(run({"stats", pair.stated, "--json", "--quiet"}))["heads"];
    const ReferenceCall call = random_call();
    size_t at = 0;
    for (int64_t b = 0; b < kBatch; ++b) {
      for (int64_t h = 0; h < kHeads; ++h) {
        int64_t masked_rows = 0;
        double worst = 0;
        for (int64_t i = 0; i < kTokens; ++i) {
          const std::vector<double> row =
              call.row(b, h, i, [&](int64_t j) { return mask.kept(b, h, i, j); });
          bool any = false;
          for (int64_t j = 0; j < kTokens; ++j, ++at) {
            any |= mask.kept(b, h, i, j);
            worst = std::max(worst, std::abs(weights[at] - row[static_cast<size_t>(j)]));
          }
          masked_rows += any ? 0 : 1;
        }
        CHECK(worst < 1e-6);
        CHECK(heads[static_cast<size_t>(b * kHeads + h)]["masked_rows"] == masked_rows);
      }
    }
  }
}

TEST_CASE("info tells what a stated mask keeps") {
  const std::map<std::string, std::string> words{
      {"valid", "valid: the keys that mask_valid marks\n"},
      {"valid_pairs", "valid_pairs: queries and keys that mask_valid marks\n"},
      {"segments", "segments: keys with the query's number in mask_segments\n"},
      {"block_causal:75",
       "block_causal:75: keys up to the end of the query's block of 75 tokens\n"},
      {"blocks", "blocks:64x128: blocks of 64 queries and 128 keys that mask_blocks marks\n"}};
  for (const StatedMask& mask : stated_masks()) {
    INFO(mask.fact);
    const std::string text = run({"info", Pair(mask).stated});
    CHECK(text.find("  mask       " + words.at(mask.fact)) != std::string::npos);
  }
}

TEST_CASE("copies state the mask as their source does, cut to the heads and batch items") {
  for (const StatedMask& mask : stated_masks()) {
    INFO(mask.fact);
    const Pair pair(mask);
    const std::string file = pair.folder / "cut.safetensors", whole = pair.folder / "copies";
    run({"convert", pair.stated, "--batch", "1", "--heads", "1,3", "-o", file, "--quiet"});
    run({"convert", pair.stated, "-o", whole, "--quiet"});
    for (const std::string& copy : {file, whole}) {
      const Json call = Json::parse(run({"info", copy, "--json"}))["calls"][0];
      CHECK(call["facts"]["mask"]["value"] == mask.fact);
      CHECK(call["facts"]["format"]["value"] == "attnscope-capture/2");
      CHECK(call["unknown_keys"].empty());
    }
    CHECK(Json::parse(read_file(whole + "/capture.json"))["format"] == "attnscope-capture/2");
    const auto of_copy = pair.exported(file, {"--dtype", "f32"});
    const auto cut =
        pair.exported(pair.stated, {"--batch", "1", "--heads", "1,3", "--dtype", "f32"});
    for (const char* values : {"weights", "lse"}) CHECK(of_copy.at(values) == cut.at(values));
    CHECK(pair.exported(whole, {"--dtype", "f32"}) ==
          pair.exported(pair.stated, {"--dtype", "f32"}));
    // Another mask leaves nothing of this one behind.
    run({"convert", pair.stated, "--mask", "none", "-o", file, "--force", "--quiet"});
    const Json none = Json::parse(run({"info", file, "--json"}))["calls"][0]["facts"];
    CHECK(none["mask"]["value"] == "none");
    CHECK(none["format"]["value"] == "attnscope-capture/1");
    CHECK(none.count("mask_block") == 0);
  }
}

TEST_CASE("a pattern of blocks in causal order, given as the call's own mask and in the mask lab") {
  const Pair pair({"block_causal:75", [](ReferenceCall&) {},
                   [](auto, auto, auto i, auto j) { return j / 75 <= i / 75; }});
  const std::string plain = pair.folder / "plain.safetensors";
  random_call().write(plain);
  CHECK(pair.exported(plain, {"--mask", "block_causal:75", "--dtype", "f32"}) ==
        pair.exported(pair.dense, {"--dtype", "f32"}));
  run({"convert", plain, "--mask", "block_causal:75", "-o", pair.folder / "copy.safetensors"});
  const Json facts =
      Json::parse(run({"info", pair.folder / "copy.safetensors", "--json"}))["calls"][0]["facts"];
  CHECK(facts["mask"]["value"] == "block_causal:75");
  const Json lab =
      Json::parse(run({"mask", plain, "--mask", "block_causal:75", "--json"}))["heads"];
  // Four whole blocks and one token.
  const double kept = 75.0 * 75 * (1 + 2 + 3 + 4) + 301;
  CHECK(lab[0]["density"].get<double>() == Approx(kept / (301.0 * 301)));
}
