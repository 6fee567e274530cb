#include <cmath>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/mask/edited_mask.h"
#include "core/mask/masked_bias.h"
#include "core/mask/picked_blocks.h"
#include "core/patterns/build_mask.h"
#include "core/patterns/mask_measurement.h"
#include "tests/core/patterns/selector_case.h"
#include "tests/core/products/product_case.h"
#include "tests/support/backend/fake_backend.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

struct Case {
  std::string pattern;
  std::string kept;  ///< rows of blocks
  double density, recall, error;
};

/// From float64 implementations of the rules that were held against the published code of each
/// selector on a CPU: comfy-kitchen, sglang, FastVideo, SLA, SpargeAttn, diffusers and
/// HunyuanVideo 1.5. Text, where it does not compete, is the last block of those with tiles.
const std::vector<Case> kCases{
    {"sol:text=compete",
     "1100000011100 1111000000000 0111000000100 0011101010000 0001110010001 0000111000000 "
     "0000011100000 0000001111001 0000000111101 0000001011110 0000101101110 0000000000111 "
     "0000000001011",
     0.333398686, 0.373311895, 0.199445436},
    {"sol:text=compete,tail=centroid",
     "1100000011100 1111000000000 0111000000100 0011101010000 0001110010001 0000111000000 "
     "0000011100000 0000001111001 0000000111101 0000001011110 0000101101110 0000000000111 "
     "0000000001011",
     0.333398686, 0.373311895, 0.259478118},
    {"sol:text=compete,tail=none",
     "1100000011100 1111000000000 0111000000100 0011101010000 0001110010001 0000111000000 "
     "0000011100000 0000001111001 0000000111101 0000001011110 0000101101110 0000000000111 "
     "0000000001011",
     0.333398686, 0.373311895, 1.091265023},
    {"sol:tau=0.5,variance=exact,text=compete,tail=none",
     "1100001011100 1111000010000 0111011000100 0011111010000 0001111110001 1001111000010 "
     "0100011100001 1110001111011 0000000111101 1000011011110 0001111101110 0111010011111 "
     "0001000011011",
     0.502009607, 0.562107005, 0.784184250},
    {"sol:keep=0.3,text=compete",
     "1100001011100 1111000010000 0111011000100 0011111010000 0001110110001 1001111000010 "
     "0100011100001 1100001111001 0000000111101 0000011011110 0000111101110 0110010001111 "
     "0001000011011",
     0.458092344, 0.513047122, 0.181037699},
    {"sol:tau=1.2",
     "1111111111111 1111000000000 1111000000100 1011101000000 1001110010001 1000111000000 "
     "1000011100000 1000001111000 1000000111101 1000001011110 1000001101110 1000000000111 "
     "1000000001011",
     0.431428291, 0.458645685, 0.203756604},
    {"sol:keep=0.2,tail=centroid",
     "1111111111111 1111000000000 1111010000100 1011101010000 1001110000001 1000111000010 "
     "1000011100000 1000001111001 1000000111100 1000001011110 1000001101110 1010010000111 "
     "1000000001011",
     0.456523870, 0.489078568, 0.234256619},
    {"subblock:text=compete",
     "0001111011101 1111100011010 1110011110100 0001111111100 0001101111101 1011100111010 "
     "0101101110110 1110100101110 0001101111101 1000111110110 1101111110000 1111011011000 "
     "0111001011110",
     0.626605235, 0.709638362, 0.444947224},
    {"subblock:keep=0.5,cells=2x8,text=compete",
     "0001111111100 1111100011010 1110011110100 0001111111100 0001101111101 1011100111010 "
     "0101101110110 1110100101110 1001001111101 1000111110110 1101111110000 1111011011000 "
     "0011101011110",
     0.628957945, 0.709801107, 0.451779625},
    {"subblock",
     "1111111111111 1111100111010 1110111110100 1001111111100 1001101111101 1011100111110 "
     "1101101110110 1110100101111 1001101111101 1010111110110 1111111110000 1111111011000 "
     "1111001011110",
     0.728556024, 0.794489934, 0.330241385},
    {"sla:keep=0.2",
     "0000000010100 0101000000000 0000010000100 0000001010000 0001000000001 0000100000010 "
     "0000001100000 0000000001001 0000000001100 0000001000010 0000001100000 0010010000000 "
     "0000000001010",
     0.153710421, 0.210795480, 1.542024208},
    {"sparge:sim=-1,cdf=0.7",
     "0111001011101 0100111110101 1001101111001 1110000101111 1000001111111 0101111110001 "
     "1111111111111",
     0.623566317, 0.677734218, 0.462295327},
    {"sparge:sim=-1,keep=0.3",
     "0001000010101 0000011010001 0001100010001 0100000101001 0000000011101 0000011100001 "
     "1111111111111",
     0.322419371, 0.373354146, 0.970271028},
    {"sparge:sim=0.3,cdf=0.8",
     "1111111111111 1111111111111 1111111111111 1110100111111 1111111111111 1111111111111 "
     "1111111111111",
     0.962356632, 0.968828381, 0.163840986},
    {"sparge:sim=0.3,keep=0.3",
     "1111111111111 1111111111111 1111111111111 0100000101001 1111111111111 1111111111111 "
     "1111111111111",
     0.887069895, 0.892619155, 0.486173346},
    {"vsa:keep=0.2",
     "11110000000000001 11010000001000001 11110000000000001 11110000000000001 00000000000011111 "
     "00000000000011111 00000000000011111 00000000000011111 00000000000011111 00000000000011111 "
     "00001100000000111 00001100000000111 00001111000000001 00001111000000001 00001111000000001 "
     "00001111000000001 11111111111111111",
     0.325556318, 0.345914552, 1.081109934},
    {"nabla",
     "1011111111111 1111111111101 1111111111101 1111111111101 1111011111111 1111011111111 "
     "1111101111111 1111101111111 0111111111111 1111111111011 1111111111011 1111111111101 "
     "1111111111111",
     0.924713263, 0.939852994, 0.123234003},
    {"nabla:p=0.6,window=3x1x3",
     "1111011111101 1111001011001 1111111101001 1111111111001 0011111110111 0111111100111 "
     "1100111111111 1100111111111 0000111111111 0100111111111 1111110111111 1100110111111 "
     "1111111111111",
     0.792961474, 0.817664646, 0.312301548},
    {"draft:keep=0.3", "0000001 0101101 0101001 0000111 0011101 1010001 1111111", 0.397706107,
     0.440545119, 1.600190434},
    {"ssta:blocks=5,tile=2x4x4",
     "1111111011101110111011101 1111111011101110111011101 1111111101110111011101111 "
     "1111111101110111011101111 1110111011101111111011101 1110111011101111111011101 "
     "0111111101111111011101111 0111111101111111011101111 1110111011101110111111101 "
     "1110111011101110111111101 1111011101110111011101111 1111011101110111011111111 "
     "1110111011101110111011111 1110111011101110111011111 0111011101110111011111111 "
     "0111011101110111011111111 1110111011111110111011111 1110111011101110111011111 "
     "0111011101110111011101111 0111011101111111011101111 1110111011101111111011101 "
     "1110111011101111111011101 0111111101110111011101111 0111111101110111011101111 "
     "1111111111111111111111111",
     0.819625527, 0.826236704, 0.109660224},
    {"ssta:blocks=4,tile=2x4x4,window=1x1x1,lambda=0.2",
     "1000000000000000001100111 0100000000000000001100111 0010000000000000001100111 "
     "0001000000000000001100111 0000100000000000000011111 0000010000000000000011111 "
     "0000001000000000000011111 0000000100000000000011111 0000000010000000000011111 "
     "0000000001000000000011111 0000000000100000000011111 0000000000010000000011111 "
     "0000000000001000000011111 0000000000000100000011111 0000000000000010000011111 "
     "0000000000000001000011111 0000000000000000100011111 0000000000000000010011111 "
     "0000000000000000001011111 0000000000000000000111111 0000000000000000001110111 "
     "0000000000000000001101111 0000000000000000000011111 0000000000000000000011111 "
     "1111111111111111111111111",
     0.281639055, 0.292369705, 1.073906958}};

std::string refusal(const std::string& pattern, const AttentionProblem& problem) {
  try {
    built(pattern, problem);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("selectors of kernels pick the blocks that their published code picks") {
  const AttentionProblem problem = AttentionProblem::make(parts_of_call());
  for (const Case& c : kCases) {
    INFO(c.pattern);
    const Mask mask = built(c.pattern, problem);
    const std::vector<std::string> rows = rows_of(c.kept);
    const std::vector<int64_t> queries = first_tokens(c.pattern, rows.size());
    const std::vector<int64_t> keys = first_tokens(c.pattern, rows.front().size());
    std::string found;
    for (const int64_t query : queries) {
      if (!found.empty()) found += ' ';
      for (const int64_t key : keys) found += keeps(mask, query, key) ? '1' : '0';
    }
    CHECK(found == c.kept);
  }
}

TEST_CASE("selectors are measured as their kernels compute, with terms for dropped blocks") {
  const AttentionProblem problem = AttentionProblem::make(parts_of_call());
  std::vector<Mask> masks;
  for (const Case& c : kCases) masks.push_back(built(c.pattern, problem));
  const HeadTask head{&problem, 0, 0, {0, kTokens}, {}, {0, kTokens}};
  for (const auto& backend : two_backends()) {
    MemoryBudget budget(int64_t{64} << 20);
    MaskMeasurement how{*backend, budget};
    how.exact = true;
    const std::vector<MaskQuality> found = measure_masks(head, masks, how);
    for (size_t i = 0; i < kCases.size(); ++i) {
      INFO(kCases[i].pattern);
      CHECK(found[i].density == Approx(kCases[i].density).epsilon(1e-8));
      CHECK(found[i].recall.value() == Approx(kCases[i].recall).epsilon(2e-6));
      CHECK(found[i].output_error.value() == Approx(kCases[i].error).epsilon(2e-5));
    }
  }
}

TEST_CASE("blocks of a selector follow the order of the tokens") {
  const AttentionProblem problem = AttentionProblem::make(parts_of_call());
  // Blocks of one frame's tokens are those of the stored order where the text is left aside.
  const Mask stored = built("sla:keep=0.3,block=8", problem);
  CHECK(stored.classify(0, 0, {0, 8}, {0, kTokens}) != TileClass::full);
  const Mask columns = built("sla:keep=0.3,block=8,order=yxt", problem);
  int64_t differ = 0;
  for (int64_t i = 0; i < kTokens; i += 5) {
    int64_t kept = 0;
    for (int64_t j = 0; j < kTokens; ++j) {
      const bool there = keeps(columns, i, j);
      kept += there;
      differ += there != keeps(stored, i, j);
    }
    CHECK(kept == 30 * 8);  // of 101 blocks
  }
  CHECK(differ > 1000);
  // By y, x and t the six frames of a cell are neighbours: a block holds those of cell 0 and two
  // of cell 1.
  const auto frame = [](int64_t t) { return kText + t * 8 * 16; };
  for (int64_t key = 0; key < kTokens; ++key) {
    CHECK(keeps(columns, frame(0), key) == keeps(columns, frame(5), key));
    CHECK(keeps(columns, frame(0), key) == keeps(columns, frame(1) + 1, key));
  }
}

TEST_CASE("selectors refuse calls that they are not of") {
  AttentionProblem::Parts parts = parts_of_call();
  parts.mask = Mask::causal();
  const AttentionProblem causal = AttentionProblem::make(std::move(parts));
  CHECK(refusal("sol", causal).find("has a mask of its own (causal)") != std::string::npos);
  parts = parts_of_call();
  // Padded text is no block that is chosen.
  parts.mask = Mask::key_range({8, kTokens}, kTokens);
  const AttentionProblem padded = AttentionProblem::make(std::move(parts));
  CHECK(refusal("vsa", padded).empty());
  CHECK(refusal("sol", padded).empty());
  CHECK(refusal("sla", padded).find("has a mask of its own") != std::string::npos);
  parts = parts_of_call();
  parts.query_tokens = parts.key_tokens = TokenGrid::unknown(kTokens);
  parts.id.kind = CallKind::self;
  const AttentionProblem bare = AttentionProblem::make(std::move(parts));
  CHECK(refusal("vsa", bare).find("give --grid TxHxW") != std::string::npos);
  CHECK(refusal("sol:order=hilbert", bare).find("grid") != std::string::npos);
  CHECK(refusal("sol", bare).empty());
  const AttentionProblem problem = AttentionProblem::make(parts_of_call());
  CHECK(refusal("nabla:tile=1x8x12", problem).find("not made of whole tiles of 1x8x12") !=
        std::string::npos);
  parts = parts_of_call();
  parts.score.cap = 30;
  const AttentionProblem capped = AttentionProblem::make(std::move(parts));
  CHECK(refusal("sol", capped).find("rest=renormalise") != std::string::npos);
  CHECK(refusal("sol:tail=none", capped).empty());
  CHECK(refusal("subblock", capped).empty());
}

TEST_CASE("a selector looks at its own head, batch item and group of keys") {
  constexpr int64_t kBatch = 2, kHeads = 4, kKeyHeads = 2;
  const auto head_values = [](uint32_t seed, int64_t item, int64_t head) {
    return channels(seed + 100 * static_cast<uint32_t>(item) + 7 * static_cast<uint32_t>(head));
  };
  const auto tensor = [&](const char* name, uint32_t seed, int64_t heads) {
    std::vector<float> all;
    for (int64_t b = 0; b < kBatch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        const std::vector<float> one = head_values(seed, b, h);
        all.insert(all.end(), one.begin(), one.end());
      }
    }
    return HeadTensor(make_tensor(name, DType::f32, {kBatch, heads, kTokens, kWidth}, all),
                      Layout::bhsd);
  };
  AttentionProblem::Parts parts = parts_of_call();
  parts.q = tensor("q", 1, kHeads);
  parts.k = tensor("k", 2, kKeyHeads);
  parts.v = tensor("v", 3, kKeyHeads);
  const AttentionProblem problem = AttentionProblem::make(std::move(parts));
  AttentionProblem::Parts alone = parts_of_call();
  const auto single = [&](const char* name, const std::vector<float>& values) {
    return HeadTensor(make_tensor(name, DType::f32, {1, 1, kTokens, kWidth}, values), Layout::bhsd);
  };
  alone.q = single("q", head_values(1, 1, 3));
  alone.k = single("k", head_values(2, 1, 1));
  alone.v = single("v", head_values(3, 1, 1));
  const AttentionProblem one = AttentionProblem::make(std::move(alone));
  const FakeBackend backend;
  for (const Case& c : kCases) {
    INFO(c.pattern);
    MemoryBudget budget(int64_t{64} << 20);
    const Mask mask =
        build_mask(parse_mask_pattern(c.pattern, "--mask"), problem, 1, 3, {backend, budget});
    const Mask other =
        build_mask(parse_mask_pattern(c.pattern, "--mask"), problem, 1, 0, {backend, budget});
    const Mask expected = built(c.pattern, one);
    int64_t wrong = 0, differ = 0;
    for (int64_t i = 0; i < kTokens; i += 11) {
      for (int64_t j = 0; j < kTokens; j += 7) {
        wrong += keeps(mask, i, j) != keeps(expected, i, j);
        differ += keeps(mask, i, j) != keeps(other, i, j);
      }
    }
    CHECK(wrong == 0);
    CHECK(differ > 0);
    if (mask.dropped() == nullptr) continue;
    CHECK(mask.dropped()->value_means == expected.dropped()->value_means);
  }
}

TEST_CASE("terms for dropped blocks stand beside a sink, and may exceed all that is kept") {
  AttentionProblem::Parts parts = parts_of_call();
  parts.sinks = Sinks({1, 1, 1}, {1.5f});
  // So sharp that a mask may keep 1e-9 of a row, beside which a sink is smaller still.
  parts.scale = HeadScales(4);
  const AttentionProblem problem = AttentionProblem::make(std::move(parts));
  const std::vector<float> q = channels(1), k = channels(2), v = channels(3);
  const auto logit = [&](int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t c = 0; c < kWidth; ++c) {
      sum += double{q[static_cast<size_t>(i * kWidth + c)]} *
             double{k[static_cast<size_t>(j * kWidth + c)]};
    }
    return 4 * sum;
  };
  for (const std::string text : {"sol:tau=1000,tail=centroid", "sol:tail=row"}) {
    INFO(text);
    const Mask mask = built(text, problem);
    const DroppedTerms& terms = *mask.dropped();
    double error = 0, norm = 0;
    const std::vector<int64_t> rows{3, 50, 211, 640, 807};
    for (const int64_t i : rows) {
      // In long double, whose range holds every exponential.
      std::vector<long double> whole(kWidth), part(kWidth);
      const long double sink = std::exp(1.5L);
      long double all = sink, kept = sink;
      for (int64_t j = 0; j < kTokens; ++j) {
        const long double e = std::exp(static_cast<long double>(logit(i, j)));
        all += e;
        if (keeps(mask, i, j)) kept += e;
        for (int64_t c = 0; c < kWidth; ++c) {
          const long double x = e * v[static_cast<size_t>(j * kWidth + c)];
          whole[static_cast<size_t>(c)] += x;
          if (keeps(mask, i, j)) part[static_cast<size_t>(c)] += x;
        }
      }
      const BlockPicks& picks = *terms.picks;
      const int64_t block = picks.queries.of_token[static_cast<size_t>(i)];
      for (int64_t b = 0; b < picks.keys.size(); ++b) {
        if (picks.row(block)[b] != 0) continue;
        long double t = 0;
        for (int64_t c = 0; c < kWidth; ++c) {
          const long double x = q[static_cast<size_t>(i * kWidth + c)];
          t += 4 * x *
               (terms.shared.empty() ? terms.key_means[static_cast<size_t>(b * kWidth + c)]
                                     : terms.centre[static_cast<size_t>(c)]);
        }
        if (!terms.shared.empty()) {
          t += terms.shared[static_cast<size_t>(block * picks.keys.size() + b)];
        }
        const long double e =
            std::exp(t) * static_cast<long double>(picks.keys.lengths[static_cast<size_t>(b)]);
        kept += e;
        for (int64_t c = 0; c < kWidth; ++c) {
          part[static_cast<size_t>(c)] +=
              e * terms.value_means[static_cast<size_t>(b * kWidth + c)];
        }
      }
      for (size_t c = 0; c < kWidth; ++c) {
        const auto difference = static_cast<double>(part[c] / kept - whole[c] / all);
        error += difference * difference;
        norm += static_cast<double>(whole[c] / all * (whole[c] / all));
      }
    }
    const HeadTask head{&problem, 0, 0, {}, rows, {0, kTokens}};
    for (const auto& backend : two_backends()) {
      MemoryBudget budget(int64_t{64} << 20);
      MaskMeasurement how{*backend, budget};
      how.exact = true;
      const MaskQuality found = measure_masks(head, {&mask, 1}, how).front();
      CHECK(found.output_error.value() == Approx(std::sqrt(error / norm)).epsilon(2e-3));
    }
  }
}

TEST_CASE("a stop ends every selector") {
  const AttentionProblem problem = AttentionProblem::make(parts_of_call());
  std::stop_source stop;
  stop.request_stop();
  for (const Case& c : kCases) {
    INFO(c.pattern);
    const FakeBackend backend;
    MemoryBudget budget(int64_t{64} << 20);
    try {
      build_mask(parse_mask_pattern(c.pattern, "--mask"), problem, 0, 0,
                 {backend, budget, stop.get_token()});
      CHECK(false);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::interrupted);
    }
  }
}

TEST_CASE("equal scores are kept as each kernel keeps them") {
  AttentionProblem::Parts parts = parts_of_call();
  const std::vector<float> same(static_cast<size_t>(kTokens * kWidth), 0.5f);
  for (HeadTensor* tensor : {&parts.q, &parts.k}) {
    *tensor = HeadTensor(make_tensor("x", DType::f32, {1, 1, kTokens, kWidth}, same), Layout::bhsd);
  }
  const AttentionProblem problem = AttentionProblem::make(std::move(parts));
  const auto kept = [&](const std::string& pattern, int64_t block, int64_t blocks) {
    const Mask mask = built(pattern, problem);
    std::string text;
    for (int64_t b = 0; b < blocks; ++b) text += keeps(mask, 404, b * block) ? '1' : '0';
    return text;
  };
  CHECK(kept("sla:keep=0.25", 64, 13) == "1110000000000");
  CHECK(kept("subblock:keep=0.25,text=compete", 64, 13) == "1111111100000");
  CHECK(kept("sol:keep=0.25,text=compete", 64, 13) == "1111111111111");
  // A ragged block is never alike.
  CHECK(kept("sparge:sim=-1,keep=0.25", 64, 13) == "1110000000001");
}

TEST_CASE("a selector of tokens side by side has blocks of its own") {
  const auto own = [](const std::string& text) {
    return parse_mask_pattern(text, "--mask").own_block();
  };
  CHECK(own("sol") == 64);
  CHECK(own("sol:order=raster,block=32") == 32);
  CHECK(own("sparge") == 64);
  CHECK_FALSE(own("sol:order=hilbert").has_value());
  CHECK_FALSE(own("vsa").has_value());
}

TEST_CASE("terms for dropped blocks do not go with edits, and a pattern says so") {
  const AttentionProblem problem = AttentionProblem::make(parts_of_call());
  const Mask mask = built("sol", problem);
  REQUIRE(mask.dropped() != nullptr);
  CHECK(built("sol:tail=none", problem).dropped()->rest == BlockRest::renormalise);
  CHECK(built("sol:rest=lost", problem).dropped()->rest == BlockRest::lost);
  CHECK((mask & Mask::causal()).dropped() == nullptr);
  CHECK_THROWS_AS(edited_mask(mask, {{0, 8, 0, 8, true}}), Error);
  const auto told = [](const std::string& text) {
    try {
      parse_mask_pattern(text, "--mask");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(told("sol:keep=0.2,tau=1").find("keep and tau both") != std::string::npos);
  CHECK(told("sparge:keep=0.2,cdf=0.9").find("keep and cdf both") != std::string::npos);
  CHECK(told("subblock:cells=3x4").find("cannot be cut into 3 equal cells") != std::string::npos);
  CHECK(told("sol:tail=centre").find("row or centroid or none") != std::string::npos);
  CHECK(told("sol:order=snake").find("an order of the tokens") != std::string::npos);
  CHECK(told("sparge:sim=2").find("a number from -1 to 1") != std::string::npos);
  CHECK(told("sol:text=drop").find("keep or compete") != std::string::npos);
  CHECK(told("topk:text=compete").find("keep or drop") != std::string::npos);
}
