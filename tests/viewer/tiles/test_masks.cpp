// Sparse masks over a map: their blocks and numbers as the window gets them.
#include <cmath>
#include <fstream>

#include "io/masks/block_mask_file.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/service_harness.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/waiting.h"
#include "viewer/tiles/mask_keeper.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr HeadId kHead{0, 1, 2};

AttentionCase described(ScoreFunction score, int64_t rows, int64_t keys) {
  AttentionCase c;
  c.shape = {2, 4, 2, rows, keys, 24};
  c.score = score;
  c.seed = 5;
  return c;
}

WishesByKind wish_for(const MaskRequest& mask) {
  WishesByKind wishes;
  wishes.mask = mask;
  return wishes;
}

std::shared_ptr<const HeadMask> measured(ServiceHarness& harness, const MaskRequest& request) {
  harness.want(wish_for(request));
  REQUIRE(harness.wait([&] {
    const auto found = find(harness.service(), request);
    return found && (found->all_rows || !found->problem.empty());
  }));
  return find(harness.service(), request);
}

}  // namespace

TEST_CASE("a mask's blocks, density and recall are those of the definitions in double") {
  struct Case {
    int64_t rows, keys, reach, block;
  };
  // Fewer rows than are sampled, more of them, and so many that a block is no entry.
  for (const Case& c : {Case{90, 70, 9, 1}, Case{331, 283, 20, 1}, Case{700, 650, 33, 2}}) {
    const Oracle oracle(described(ScoreFunction::softmax, c.rows, c.keys));
    INFO(oracle.text());
    const MapReference reference(oracle, kHead, Quantity::weights);
    ServiceHarness harness(oracle.problem());
    REQUIRE(harness.service().offers(MaskRequest{}));
    const auto mask = measured(harness, {kHead, "window:" + std::to_string(c.reach)});
    REQUIRE(mask->problem.empty());
    double kept = 0, recall = 0;
    std::vector<uint8_t> blocks(mask->kept.size());
    REQUIRE(mask->block == c.block);
    REQUIRE(mask->query_blocks * c.block >= c.rows);
    REQUIRE(mask->key_blocks == (c.keys + c.block - 1) / c.block);
    REQUIRE(static_cast<int64_t>(blocks.size()) == mask->query_blocks * mask->key_blocks);
    for (int64_t q = 0; q < c.rows; ++q) {
      for (int64_t k = 0; k < c.keys; ++k) {
        if (std::abs(q - k) > c.reach) continue;
        kept += 1;
        recall += reference.at(q, k);
        blocks[static_cast<size_t>(q / c.block * mask->key_blocks + k / c.block)] = 1;
      }
    }
    CHECK(mask->kept == blocks);
    REQUIRE(mask->quality);
    const auto rows = static_cast<double>(c.rows), keys = static_cast<double>(c.keys);
    CHECK(std::abs(mask->quality->density - kept / rows / keys) < 1e-12);
    CHECK(*mask->quality->recall == Approx(recall / rows).epsilon(1e-5));
    CHECK(*mask->quality->oracle_recall >= *mask->quality->recall_sampled - 1e-6);
    CHECK(mask->quality->sampled_rows == std::min<int64_t>(c.rows, 256));
  }
}

TEST_CASE("an edited mask keeps and drops what was edited, and tells what each block gets") {
  const Oracle oracle(described(ScoreFunction::softmax, 700, 650));
  const MapReference reference(oracle, kHead, Quantity::weights);
  ServiceHarness harness(oracle.problem());
  MaskRequest request{kHead, "window:33"};
  request.edits = {{0, 100, 400, 500, true}, {50, 60, 0, 450, false}};
  const auto kept = [](int64_t q, int64_t k) {
    if (q >= 50 && q < 60 && k < 450) return false;
    if (q < 100 && k >= 400 && k < 500) return true;
    return std::abs(q - k) <= 33;
  };
  const auto mask = measured(harness, request);
  REQUIRE(mask->problem.empty());
  CHECK(mask->mass.empty());
  double entries = 0, recall = 0;
  std::vector<uint8_t> blocks(mask->kept.size());
  std::vector<double> mass(mask->kept.size());
  for (int64_t q = 0; q < 700; ++q) {
    for (int64_t k = 0; k < 650; ++k) {
      const auto block = static_cast<size_t>(q / 2 * mask->key_blocks + k / 2);
      mass[block] += reference.at(q, k) / 2;
      if (!kept(q, k)) continue;
      entries += 1;
      recall += reference.at(q, k) / 700;
      blocks[block] = 1;
    }
  }
  CHECK(mask->kept == blocks);
  CHECK(std::abs(mask->quality->density - entries / 700 / 650) < 1e-12);
  CHECK(*mask->quality->recall == Approx(recall).epsilon(1e-5));
  request.lost = true;
  CHECK(measured(harness, request)->quality->recall == mask->quality->recall);
  REQUIRE(harness.wait_idle());
  const auto lost = find(harness.service(), request);
  REQUIRE(lost->mass.size() == mass.size());
  double most = 0;
  int64_t wrong = 0;
  for (size_t i = 0; i < mass.size(); ++i) {
    if (std::abs(double{lost->mass[i]} - mass[i]) > 1e-4 * mass[i] + 1e-9) ++wrong;
    if (blocks[i] == 0) most = std::max(most, mass[i]);
  }
  CHECK(wrong == 0);
  CHECK(most_lost(*lost) == Approx(most).epsilon(1e-4));
  // An edit of a larger map.
  request.edits.push_back({0, 701, 0, 1, true});
  CHECK(measured(harness, request)->problem.find("beyond a map of 700 x 650") != std::string::npos);
}

TEST_CASE("in another order of tokens a mask's blocks move, and its numbers stay") {
  const Oracle oracle(described(ScoreFunction::softmax, 90, 70));
  ServiceHarness harness(oracle.problem());
  const auto stored = measured(harness, {kHead, "window:9"});
  std::vector<int32_t> backwards(90);
  for (int32_t i = 0; i < 90; ++i) backwards[static_cast<size_t>(i)] = 89 - i;
  MapPlaces places;
  places.rows = PlaceOrder(backwards);
  HeadId head = kHead;
  head.order = harness.service().order_number(places);
  const auto moved = measured(harness, {head, "window:9"});
  CHECK(moved->quality->recall == stored->quality->recall);
  CHECK(moved->quality->density == stored->quality->density);
  REQUIRE(moved->kept.size() == 90 * 70);
  int64_t wrong = 0;
  for (size_t q = 0; q < 90; ++q) {
    for (size_t k = 0; k < 70; ++k) {
      if (moved->kept[q * 70 + k] != stored->kept[(89 - q) * 70 + k]) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("another mask ends the work on the one before, and going back finds it") {
  const Oracle oracle(described(ScoreFunction::softmax, 331, 283));
  ServiceHarness harness(oracle.problem());
  const MaskRequest first{kHead, "window:20"}, second{kHead, "causal"};
  const auto before = measured(harness, first);
  harness.want(wish_for({kHead, "window:3"}));
  CHECK(measured(harness, second)->quality->density > 0.5);
  CHECK(measured(harness, first) == before);
  CHECK(harness.wait_idle());
  harness.want({});
  CHECK(harness.wait_idle());
}

TEST_CASE("a saved mask tells its block, and whose blocks it has") {
  const TemporaryFolder folder;
  const std::string file = folder / "kept.npy";
  const Oracle oracle(described(ScoreFunction::softmax, 90, 70));
  const AttentionProblem& problem = oracle.problem();
  ServiceHarness harness(problem);
  const auto save = [&](const HeadName& of) {
    BlockMaskWriter writer(file, true, 1, 6, 5);
    std::vector<uint8_t> bits(30);
    bits[0] = bits[29] = 1;
    writer.append(bits);
    writer.commit({.mask = "by hand", .block = 16, .heads = {{of, {}, {}}}});
  };
  HeadName name = head_name(problem.id(), kHead.batch, kHead.head);
  save(name);
  const auto own = measured(harness, {kHead, file});
  CHECK(own->problem.empty());
  CHECK(own->other.empty());
  // 16 x 16 at the first corner, 10 x 6 at the last.
  CHECK(own->quality.value().density == Approx((256.0 + 60.0) / (90 * 70)).epsilon(1e-12));
  name.head = 3;
  name.layer += 2;
  save(name);
  const auto other = measured(harness, {kHead, file, 16});
  CHECK(other->problem.empty());
  CHECK(other->other == "layer " + std::to_string(name.layer) + " head 3");
  const auto told = measured(harness, {kHead, file, 32});
  CHECK(told->problem.find("a block is 16 tokens, as ") != std::string::npos);
}

TEST_CASE("what is no mask of the head is told in one line, and tried again when wanted again") {
  const TemporaryFolder folder;
  const Oracle oracle(described(ScoreFunction::softmax, 90, 70));
  ServiceHarness harness(oracle.problem());
  const std::string path = folder / "tree.json";
  const MaskRequest tree{kHead, path};
  std::ofstream(path) << "{\"nand\": []}";
  const auto wrong = measured(harness, tree);
  CHECK(wrong->problem.find("expected a pattern's text") != std::string::npos);
  CHECK(wrong->problem.find('\n') == std::string::npos);
  CHECK(wrong->kept.empty());
  CHECK(measured(harness, {kHead, folder / "none.npy"})->problem.find("none.npy") !=
        std::string::npos);
  // No token grid.
  CHECK(measured(harness, {kHead, "spatial:frames=1"})->problem.find("grid") != std::string::npos);
  std::ofstream(path) << "[\"causal\", \"window:4\"]";
  CHECK(measured(harness, tree)->problem.empty());
  CHECK(harness.service().status().problem.empty());

  const Oracle sigmoid(described(ScoreFunction::sigmoid, 90, 70));
  ServiceHarness other(sigmoid.problem());
  CHECK(measured(other, {kHead, "causal"})->problem.find("sigmoid") != std::string::npos);
}

TEST_CASE("a mask that found no memory is measured once others gave some back") {
  const Oracle oracle(described(ScoreFunction::softmax, 90, 70));
  const ServiceHarness harness(oracle.problem());
  MemoryBudget budget(int64_t{16} << 20);
  MemoryReservation others = budget.reserve(int64_t{12} << 20, "others");
  MaskKeeper keeper(
      harness.backend(), int64_t{8} << 20,
      [&](int64_t bytes, std::string_view purpose) { return budget.reserve(bytes, purpose); },
      [&] { return budget.used(); }, [] {});
  const MaskRequest request{kHead, "window:9"};
  keeper.want(MaskKeeper::Wish{request, std::make_shared<AttentionProblem>(oracle.problem())});
  REQUIRE(becomes([&] { return keeper.find(request) != nullptr; }));
  CHECK(contains(keeper.find(request)->problem, "measuring a mask"));
  CHECK_FALSE(keeper.busy());
  others = {};
  CHECK(keeper.busy());
  REQUIRE(becomes([&] { return keeper.find(request)->all_rows; }));
  CHECK(keeper.find(request)->problem.empty());
  CHECK_FALSE(keeper.busy());
}
