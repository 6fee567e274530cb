#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/mask/picked_blocks.h"
#include "core/patterns/build_mask.h"
#include "core/patterns/mask_measurement.h"
#include "core/patterns/scored_blocks.h"
#include "tests/core/patterns/selector_case.h"
#include "tests/core/products/product_case.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

struct LabCase {
  std::string edit;
  std::string kept;  ///< rows of blocks
  double density, recall, error;
  double cosine, best_blocks;  ///< 0: not computed
};

/// From float64 implementations of the rules, which for XAttention, DFSAttn, skip-softmax and VSA's
/// packed tiles were held against the published code on a CPU, and from definitions.
const std::vector<LabCase> kLabCases{
    {"xattention:p=0.8,block=64,stride=8",
     "1011111111110 1111100111110 1110111111100 1111111111100 1111101111101 1111100111110 "
     "1101101111110 1110100111111 1001101111111 1010111110110 1101111110010 1111111111000 "
     "1111101011110",
     0.791294971, 0.845059126, 0.262003809, 0.972836438, 0.845279905},
    {"xattention:p=0.6", "1100110 1011100 1111100 1001110 1011110 1111000 1100110", 0.683854524,
     0.718501436, 0.475594978, 0.913187449, 0.719928982},
    {"dfs:keep=0.3,order=stored", "0100100 0001100 0100001 1000001 0000110 0011000 0100100",
     0.282325262, 0.328032439, 1.291534059, 0.643984544, 0.361813450},
    {"block-oracle:keep=0.2,text=compete",
     "0001000001100 0111000000000 0100010000100 0000001011000 0001000010001 1000100010000 "
     "0100001100000 1010000001000 0000000011100 0000001000110 0000011100000 0010010001000 "
     "0010000001010",
     0.235271052, 0.312318067, 1.280045234, 0.714772808, 0.312318067},
    {"sla:keep=0.3,rest=lost",
     "0000000011100 0101000010000 0000011000100 0001001010000 0001000010001 0001100000010 "
     "0100001100000 0100000001001 0000000001101 0000001000110 0000101100000 0110010000000 "
     "0001000001010",
     0.230565631, 0.301646882, 0.765897701, 0.658160705, 0.312318067},
    {"sla:keep=0.3,rest=row",
     "0000000011100 0101000010000 0000011000100 0001001010000 0001000010001 0001100000010 "
     "0100001100000 0100000001001 0000000001101 0000001000110 0000101100000 0110010000000 "
     "0001000001010",
     0.230565631, 0.301646882, 0.213441540, 0.977018715, 0.312318067},
    {"sla:keep=0.3,rest=centroid",
     "0000000011100 0101000010000 0000011000100 0001001010000 0001000010001 0001100000010 "
     "0100001100000 0100000001001 0000000001101 0000001000110 0000101100000 0110010000000 "
     "0001000001010",
     0.230565631, 0.301646882, 0.273463649, 0.961899813, 0.312318067},
    {"sla:keep=0.3,rest=coarse,gate=0.5",
     "0000000011100 0101000010000 0000011000100 0001001010000 0001000010001 0001100000010 "
     "0100001100000 0100000001001 0000000001101 0000001000110 0000101100000 0110010000000 "
     "0001000001010",
     0.230565631, 0.301646882, 1.381920028, 0.756842236, 0.312318067},
    {"sla:keep=0.3,rest=linear,gate=0.5",
     "0000000011100 0101000010000 0000011000100 0001001010000 0001000010001 0001100000010 "
     "0100001100000 0100000001001 0000000001101 0000001000110 0000101100000 0110010000000 "
     "0001000001010",
     0.230565631, 0.301646882, 1.347617515, 0.769791156, 0.312318067},
    {"skip-softmax:lambda=0.95,block=64",
     "1111111011111 1111011010101 1110011101100 1111111111100 1111111111111 1111100110010 "
     "1111101111010 1111101101111 1111111111101 1110111110110 1111111110000 1111111111100 "
     "1111101111100",
     0.805411234, 0.844204773, 0.292521168, 0.960256005, 0.854282759},
    {"vsa:keep=0.2,text=compete",
     "11110000001000000 11010000001100000 11110000001000000 11110000001000000 "
     "00000001000011110 00000100000011110 00000001000011110 00000001000011110 "
     "00000000000011111 00000000000011111 00001100000000111 00001100000000111 "
     "00001111000000001 00001111000000001 00001111000000001 00001111000000001 "
     "11111111111111111",
     0.331830213, 0.359364081, 0.846463537, 0, 0},
    {"vsa:keep=0.5,text=compete",
     "11110000101111000 11110000101111000 11110000111101000 11110000111101000 "
     "00001111010011110 00001111010011110 00001111100011110 00001111100011110 "
     "00100111000011111 00001111000011111 00001111000011111 00101111000010111 "
     "11111111000000001 11011111000100001 11111111000000001 11011111000001001 "
     "11111111111111111",
     0.565532791, 0.598988473, 0.535251286, 0, 0}};

std::vector<MaskQuality> measured(const AttentionProblem& problem, const std::vector<Mask>& masks,
                                  const TileBackend& backend) {
  MemoryBudget budget(int64_t{64} << 20);
  MaskMeasurement how{backend, budget};
  how.exact = how.best_blocks = true;
  return measure_masks({&problem, 0, 0, {0, kTokens}, {}, {0, kTokens}}, masks, how);
}

}  // namespace

TEST_CASE("more selectors pick as their code does, with all that stands for the rest") {
  const AttentionProblem problem = AttentionProblem::make(parts_of_call());
  std::vector<Mask> masks;
  for (const LabCase& c : kLabCases) {
    INFO(c.edit);
    masks.push_back(built(c.edit, problem));
    const std::vector<std::string> rows = rows_of(c.kept);
    const std::vector<int64_t> queries = first_tokens(c.edit, rows.size());
    const std::vector<int64_t> keys = first_tokens(c.edit, rows.front().size());
    std::string found;
    for (const int64_t query : queries) {
      if (!found.empty()) found += ' ';
      for (const int64_t key : keys) found += keeps(masks.back(), query, key) ? '1' : '0';
    }
    CHECK(found == c.kept);
  }
  for (const auto& backend : two_backends()) {
    const std::vector<MaskQuality> found = measured(problem, masks, *backend);
    for (size_t i = 0; i < kLabCases.size(); ++i) {
      const LabCase& c = kLabCases[i];
      INFO(c.edit);
      CHECK(found[i].density == Approx(c.density).epsilon(1e-8));
      CHECK(masks[i].dropped()->picks->density() == Approx(c.density).epsilon(1e-8));
      CHECK(found[i].recall.value() == Approx(c.recall).epsilon(2e-6));
      CHECK(found[i].output_error.value() == Approx(c.error).epsilon(2e-5));
      if (c.cosine == 0) continue;
      CHECK(found[i].output_cosine.value() == Approx(c.cosine).epsilon(2e-6));
      CHECK(found[i].best_block_recall.value() == Approx(c.best_blocks).epsilon(2e-6));
    }
  }
}

TEST_CASE("terms for dropped blocks diverge from the weights as defined") {
  const AttentionProblem problem = AttentionProblem::make(parts_of_call());
  const std::vector<Mask> masks{built("sla:keep=0.3,rest=row", problem),
                                built("sla:keep=0.3,rest=centroid", problem),
                                built("sla:keep=0.3", problem)};
  for (const auto& backend : two_backends()) {
    const std::vector<MaskQuality> found = measured(problem, masks, *backend);
    CHECK(found[0].divergence.value() == Approx(0.019693282).epsilon(1e-5));
    CHECK(found[1].divergence.value() == Approx(0.027477181).epsilon(1e-5));
    CHECK_FALSE(found[2].divergence.has_value());
  }
}

TEST_CASE("the lab tells what was forced, what ties, and errors of segments") {
  const AttentionProblem problem = AttentionProblem::make(parts_of_call());
  const std::vector<Mask> masks{built("sol:tau=1000,tail=none", problem), built("vsa", problem),
                                built("sla:keep=0.3", problem)};
  const auto backend = std::move(two_backends().front());
  const std::vector<MaskQuality> found = measured(problem, masks, *backend);
  // Nothing is that far above: all that is kept is forced.
  CHECK(found[0].forced_mass.value() == Approx(found[0].recall.value()).epsilon(1e-12));
  CHECK(found[0].ties.value() == 0);
  CHECK(found[1].forced_mass.value() > 0);
  CHECK(found[1].forced_mass.value() < 0.5 * found[1].recall.value());
  CHECK(found[2].forced_mass.value() == 0);
  CHECK(found[1].visited.value() < 0.3);
  REQUIRE(found[1].segment_errors.size() == 2);
  // The rows of text are computed whole.
  CHECK(found[1].segment_errors[0].first == "text");
  CHECK(found[1].segment_errors[0].second < 1e-6);
  CHECK(found[1].segment_errors[1].second > found[1].output_error.value());
}

TEST_CASE("equal scores are told as ties") {
  AttentionProblem::Parts parts = parts_of_call();
  const std::vector<float> same(static_cast<size_t>(kTokens * kWidth), 0.5f);
  for (HeadTensor* tensor : {&parts.q, &parts.k}) {
    *tensor = HeadTensor(make_tensor("x", DType::f32, {1, 1, kTokens, kWidth}, same), Layout::bhsd);
  }
  const AttentionProblem problem = AttentionProblem::make(std::move(parts));
  // 13 rows of 13 equal scores, of which one decides.
  CHECK(built("sla:keep=0.25", problem).dropped()->picks->ties == 13 * 12);
  CHECK(built("sla:keep=1", problem).dropped()->picks->ties == 0);
}

TEST_CASE("rules that differ in their budget alone share their scores") {
  const AttentionProblem problem = AttentionProblem::make(parts_of_call());
  const auto backend = std::move(two_backends().front());
  MemoryBudget budget(int64_t{64} << 20);
  const ScoredHead head{problem, 0, 0, *backend, budget, {}};
  ScoreKeeper keeper;
  const auto scores = [&](const std::string& text) {
    return keeper.get(parse_mask_pattern(text, "--mask"), head).get();
  };
  const ScoredBlocks* const first = scores("sla:keep=0.1");
  CHECK(scores("sla:keep=0.5,rest=row") == first);
  for (const std::string other :
       {"sla:keep=0.1,block=32", "sla:keep=0.1,text=keep", "sla:keep=0.1,order=morton", "subblock",
        "sparge", "sparge:sim=0", "subblock:cells=1x1", "ssta", "ssta:lambda=0.2"}) {
    INFO(other);
    const std::string before = score_identity(parse_mask_pattern("sla:keep=0.1", "--mask"));
    CHECK(score_identity(parse_mask_pattern(other, "--mask")) != before);
  }
  CHECK(score_identity(parse_mask_pattern("sparge", "--mask")) !=
        score_identity(parse_mask_pattern("sparge:sim=0", "--mask")));
  CHECK(score_identity(parse_mask_pattern("ssta", "--mask")) !=
        score_identity(parse_mask_pattern("ssta:lambda=0.2", "--mask")));
  const Mask kept = build_mask(parse_mask_pattern("sla:keep=0.2", "--mask"), problem, 0, 0,
                               {*backend, budget, {}, &keeper});
  const Mask alone = built("sla:keep=0.2", problem);
  CHECK(kept.dropped()->picks->kept == alone.dropped()->picks->kept);
}

TEST_CASE("a sample of rows tells the densities of picked blocks exactly") {
  const AttentionProblem problem = AttentionProblem::make(parts_of_call());
  const std::vector<Mask> masks{built("sol", problem), built("vsa:keep=0.3", problem)};
  const auto backend = std::move(two_backends().front());
  MemoryBudget budget(int64_t{64} << 20);
  const HeadTask head{&problem, 0, 0, {0, kTokens}, {}, {0, kTokens}};
  const std::vector<MaskQuality> all = measured(problem, masks, *backend);
  const std::vector<MaskQuality> some = sample_masks(head, masks, {*backend, budget});
  for (size_t m = 0; m < masks.size(); ++m) {
    CHECK(some[m].density == Approx(all[m].density).epsilon(1e-12));
    CHECK(some[m].sampled_rows == 256);
    // Within five of its standard errors.
    CHECK(std::abs(some[m].recall.value() - all[m].recall.value()) <
          5 * some[m].recall_stderr.value());
    CHECK(some[m].recall_stderr.value() > 0);
    CHECK_FALSE(all[m].recall_stderr.has_value());
    CHECK_FALSE(some[m].best_block_recall.has_value());
  }
}
