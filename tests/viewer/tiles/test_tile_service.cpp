#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/aligned_vector.h"
#include "core/base/error.h"
#include "core/products/reverse_query.h"
#include "core/products/row_collector.h"
#include "core/stream/streaming_engine.h"
#include "core/tensor/memory_tensor.h"
#include "io/capture/lse_cache.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/service_harness.h"
#include "tests/support/temporary_folder.h"
#include "viewer/tiles/texels/pyramid_tiles.h"
#include "viewer/tiles/texels/sampled_overview.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr HeadId kHead{0, 0, 1};

/// The rectangle of a head as an export has it.
std::vector<float> emitted(const TileBackend& backend, const AttentionProblem& problem,
                           const HeadId& id, IndexRange rows, IndexRange keys, Quantity quantity) {
  const auto head = backend.bind(problem, id.batch, id.head);
  std::vector<int64_t> index;
  for (int64_t row = rows.begin; row < rows.end; ++row) index.push_back(row);
  std::vector<std::byte> q(static_cast<size_t>(rows.size() * problem.q().row_bytes()));
  problem.q().read_rows(id.batch, id.head, rows, q.data());
  const QueryBlock queries{q.data(), index};
  AlignedVector<std::byte> workspace(
      static_cast<size_t>(backend.workspace_bytes(problem, rows.size(), keys.size(), false)));
  std::vector<RowNorm> norms(index.size());
  const bool divided = quantity == Quantity::weights && is_normalised(problem.score());
  if (divided) head->row_norms(queries, norms, workspace);
  if (!divided) norms.clear();
  std::vector<float> entries(static_cast<size_t>(rows.size() * keys.size()));
  auto* block = reinterpret_cast<std::byte*>(entries.data());
  head->emit(queries, norms, keys, quantity, {{&block, 1}, keys.size(), keys.size(), Encoding::f32},
             workspace);
  return entries;
}

std::vector<TileId> all_tiles(const MapGeometry& geometry, const HeadId& head, Quantity quantity,
                              int first_level) {
  std::vector<TileId> tiles;
  for (int level = geometry.top_level; level >= first_level; --level) {
    for (int64_t row = 0; row < geometry.tile_rows(level); ++row) {
      for (int64_t col = 0; col < geometry.tile_cols(level); ++col) {
        tiles.push_back({head, quantity, level, row, col});
      }
    }
  }
  return tiles;
}

/// Level 0 tiles, entry by entry.
void check_entries(ServiceHarness& harness, const AttentionProblem& problem, Quantity quantity) {
  const MapGeometry geometry = harness.service().geometry(kHead);
  const IndexRange cols{0, geometry.cols};
  const std::vector<float> entries =
      emitted(harness.backend(), problem, kHead, {0, geometry.rows}, cols, quantity);
  for (const TileId& id : all_tiles(geometry, kHead, quantity, 0)) {
    if (id.level > 0) continue;
    const auto tile = find(harness.service(), id);
    REQUIRE(tile);
    CHECK(tile->exact);
    CHECK(tile->rows_per_texel == 1);
    int64_t wrong = 0;
    for (int64_t r = 0; r < tile->rows; ++r) {
      for (int64_t c = 0; c < tile->cols; ++c) {
        const float entry = entries[static_cast<size_t>((id.row * kTileSide + r) * geometry.cols +
                                                        id.col * kTileSide + c)];
        const auto at = static_cast<size_t>(r * tile->cols + c);
        const bool masked = entry == 0 && tile->max[at] == -std::numeric_limits<float>::infinity();
        if (masked && tile->mean[at] == tile->max[at]) continue;
        if (tile->max[at] != entry || tile->mean[at] != entry) ++wrong;
      }
    }
    CHECK(wrong == 0);
  }
}

/// Row and column lines against the reference, one token and several.
void check_lines(ServiceHarness& harness, const MapReference& reference) {
  for (const bool reverse : {false, true}) {
    const int64_t tokens = reverse ? reference.cols : reference.rows;
    const int64_t length = reverse ? reference.rows : reference.cols;
    std::vector<int64_t> many;
    for (int64_t i = 3; i < tokens; i += i % 7 == 0 ? tokens / 3 : 1 + i % 3) many.push_back(i);
    for (const std::vector<int64_t>& chosen : {std::vector<int64_t>{tokens - 1}, many}) {
      const LineRequest request{kHead, reference.quantity, reverse, chosen};
      harness.want({request, {}, {}, {}});
      REQUIRE(harness.wait([&] { return find(harness.service(), request) != nullptr; }));
      const auto line = find(harness.service(), request);
      REQUIRE(static_cast<int64_t>(line->values.size()) == length);
      const bool tells = reference.has_mask && reference.quantity == Quantity::weights;
      REQUIRE(static_cast<int64_t>(line->masked.size()) == (tells ? length : 0));
      int64_t wrong = 0;
      for (int64_t i = 0; i < length; ++i) {
        double sum = 0;
        int64_t count = 0;
        for (const int64_t token : chosen) {
          const double entry = reverse ? reference.at(i, token) : reference.at(token, i);
          if (reference.quantity == Quantity::logits && std::isinf(entry)) continue;
          sum += entry;
          ++count;
        }
        const double mean =
            count > 0 ? sum / static_cast<double>(count) : -std::numeric_limits<double>::infinity();
        if (!reference.close(line->values[static_cast<size_t>(i)], mean)) ++wrong;
        const bool masked = std::all_of(chosen.begin(), chosen.end(), [&](int64_t token) {
          return reverse ? reference.is_masked(i, token) : reference.is_masked(token, i);
        });
        if (tells && (line->masked[static_cast<size_t>(i)] != 0) != masked) ++wrong;
      }
      INFO(reverse << ", " << chosen.size() << " tokens");
      CHECK(wrong == 0);
    }
  }
}

AttentionCase described(ScoreFunction score, std::string_view mask, int64_t rows, int64_t keys) {
  AttentionCase c;
  c.shape = {2, 4, 2, rows, keys, 24};
  c.score = score;
  c.mask = mask;
  c.seed = 7;
  return c;
}

}  // namespace

TEST_CASE("a small map: every tile, line and probe of every score and mask") {
  struct Case {
    ScoreFunction score;
    std::string_view mask;
    DType dtype;
    bool logits;
  };
  const Case cases[] = {
      {ScoreFunction::softmax, "none", DType::bf16, true},
      {ScoreFunction::softmax, "causal_and_keys", DType::f32, true},
      {ScoreFunction::softmax, "masked_rows", DType::f16, true},
      {ScoreFunction::sigmoid, "causal", DType::f32, true},
      {ScoreFunction::linear_elu1, "none", DType::f32, false},
  };
  for (const Case& c : cases) {
    AttentionCase description = described(c.score, c.mask, 331, 283);
    description.dtype = c.dtype;
    const Oracle oracle(description);
    INFO(oracle.text());
    ServiceHarness harness(oracle.problem());
    TileService& service = harness.service();
    for (const Quantity quantity : {Quantity::weights, Quantity::logits}) {
      if (quantity == Quantity::logits && !c.logits) continue;
      const MapReference reference(oracle, kHead, quantity);
      harness.want({{}, {}, all_tiles(service.geometry(kHead), kHead, quantity, 0), {kHead}});
      REQUIRE(harness.wait([&] { return service.exact(kHead) && !service.status().busy; }));
      CHECK(service.status().problem.empty());
      CHECK(service.status().exact_progress == 1);
      for (const TileId& id : all_tiles(service.geometry(kHead), kHead, quantity, 0)) {
        const auto tile = find(service, id);
        REQUIRE(tile);
        CHECK(tile->exact);
        CHECK(reference.differs(*tile).empty());
      }
      check_entries(harness, oracle.problem(), quantity);
      check_lines(harness, reference);
    }
    const MapReference weights(oracle, kHead, Quantity::weights);
    const ProbedEntry probed = harness.probe({kHead, 330, 17}).value();
    CHECK(weights.close(probed.weight, weights.at(330, 17)));
    if (c.logits) {
      const MapReference logits(oracle, kHead, Quantity::logits);
      CHECK(logits.close(probed.logit, logits.at(330, 17)));
      CHECK(logits.close(harness.probe({kHead, 0, 200}).value().logit, logits.at(0, 200)));
    } else {
      CHECK(std::isnan(probed.logit));
    }
  }
}

TEST_CASE("a map with finer tiles: sampled at first, then exact, on every level") {
  struct Case {
    ScoreFunction score;
    std::string_view mask;
    Quantity quantity;
  };
  const Case cases[] = {{ScoreFunction::softmax, "causal", Quantity::weights},
                        {ScoreFunction::sigmoid, "none", Quantity::weights},
                        {ScoreFunction::softmax, "masked_rows", Quantity::logits}};
  for (const Case& c : cases) {
    const Oracle oracle(described(c.score, c.mask, 4101, 1203));
    INFO(oracle.text());
    const MapReference reference(oracle, kHead, c.quantity);
    ServiceHarness harness(oracle.problem(),
                           {.memory = int64_t{128} << 20, .threads = 2, .cache_folders = {}});
    TileService& service = harness.service();
    const MapGeometry geometry = service.geometry(kHead);
    REQUIRE(geometry.base_level == 1);
    const std::vector<TileId> coarse = all_tiles(geometry, kHead, c.quantity, geometry.base_level);

    harness.want({{}, {}, coarse, {}});
    REQUIRE(harness.wait_idle());
    const SamplePlan plan(geometry.rows);
    REQUIRE(plan.stages() == 1);
    const std::vector<int64_t> rows = plan.new_rows(0);
    for (const TileId& id : coarse) {
      const auto tile = find(service, id);
      REQUIRE(tile);
      CHECK_FALSE(tile->exact);
      CHECK(tile->rows_per_texel == (id.level > 3 ? int64_t{1} << (id.level - 3) : 1));
      // One texel of it, from the rows that are known to be sampled.
      const int64_t row = id.row * kTileSide + tile->rows / 2, col = id.col * kTileSide;
      const int group = std::max(id.level, plan.exponent(0));
      double most = -std::numeric_limits<double>::infinity();
      for (const int64_t r : rows) {
        if (r >> group != (row << id.level) >> group) continue;
        for (int64_t k = col << id.level; k < std::min(geometry.cols, (col + 1) << id.level); ++k) {
          most = std::max(most, reference.at(r, k));
        }
      }
      const bool masked = std::isinf(reference.texel(id.level, row, col).max);
      if (masked) most = -std::numeric_limits<double>::infinity();
      CHECK(reference.close(tile->max[static_cast<size_t>(tile->rows / 2 * tile->cols)], most));
    }
    CHECK_FALSE(service.exact(kHead));

    harness.want({{}, {}, all_tiles(geometry, kHead, c.quantity, 0), {kHead}});
    REQUIRE(harness.wait([&] { return service.exact(kHead) && !service.status().busy; }));
    CHECK(service.status().problem.empty());
    for (const TileId& id : all_tiles(geometry, kHead, c.quantity, 0)) {
      const auto tile = find(service, id);
      REQUIRE(tile);
      CHECK(tile->exact);
      CHECK(tile->rows_per_texel == int64_t{1} << id.level);
      CHECK(reference.differs(*tile) == "");
    }
    check_entries(harness, oracle.problem(), c.quantity);
    check_lines(harness, reference);
  }
}

TEST_CASE("a pass that fits only in the place of the sample makes the map exact") {
  const Oracle oracle(described(ScoreFunction::softmax, "causal", 4101, 1203));
  const MapReference reference(oracle, kHead, Quantity::weights);
  const MapGeometry geometry = MapGeometry::of(4101, 1203);
  const int64_t pyramid = PyramidTiles::bytes(geometry);
  // A third of it is the workers'.
  const int64_t memory = pyramid * 3 / 2 + (int64_t{2} << 20);
  REQUIRE(pyramid + SampledOverview::bytes(geometry, Quantity::weights) > memory);
  ServiceHarness harness(oracle.problem(), {.memory = memory, .threads = 2, .cache_folders = {}});
  TileService& service = harness.service();
  const LineRequest line{kHead, Quantity::weights, false, {2000}};
  const TileId top{kHead, Quantity::weights, geometry.top_level, 0, 0};
  const TileId later{kHead, Quantity::weights, geometry.base_level, 1, 1};
  harness.want({line, {}, {top}, {kHead}});
  REQUIRE(harness.wait([&] { return find(service, top) != nullptr; }));
  harness.want({line, {}, {top, later}, {kHead}});
  REQUIRE(harness.wait_idle());
  CHECK(service.status().problem.empty());
  CHECK(service.exact(kHead));
  CHECK(find(service, line));
  for (const TileId& id : {top, later}) {
    REQUIRE(find(service, id));
    CHECK(find(service, id)->exact);
    CHECK(reference.differs(*find(service, id)) == "");
  }
}

TEST_CASE("lines and finer tiles need no pass, and tell the same after it") {
  const Oracle oracle(described(ScoreFunction::softmax, "none", 4101, 1203));
  ServiceHarness harness(oracle.problem());
  TileService& service = harness.service();
  const TileId fine{kHead, Quantity::weights, 0, 9, 2};
  const LineRequest row{kHead, Quantity::weights, false, {5, 6, 700, 4100}};
  const LineRequest column{kHead, Quantity::weights, true, {1202}};
  harness.want({row, {}, {fine}, {}});
  REQUIRE(harness.wait_idle());
  const auto tile = find(service, fine);
  const auto line = find(service, row);
  REQUIRE(tile);
  REQUIRE(line);
  CHECK_FALSE(service.exact(kHead));
  // All norms are needed, and found by the pass that the line brings about.
  harness.want({column, row, {fine}, {}});
  REQUIRE(harness.wait([&] { return find(service, column) && service.exact(kHead); }));
  // New ones, with norms that are known.
  ServiceHarness second(oracle.problem(),
                        {.memory = int64_t{24} << 20, .threads = 1, .cache_folders = {}});
  second.want({column, {}, {}, {}});
  REQUIRE(second.wait_idle());
  second.want({row, {}, {fine}, {}});
  REQUIRE(second.wait_idle());
  CHECK(find(second.service(), fine)->max == tile->max);
  CHECK(find(second.service(), fine)->mean == tile->mean);
  CHECK(find(second.service(), row)->values == line->values);
  CHECK(find(second.service(), column)->values == find(service, column)->values);
}

TEST_CASE("lines are the bits of the query command's rows and columns") {
  // More rows than RowMean's groups have, and keys of several runs.
  for (const auto& [score, mask] :
       {std::pair<ScoreFunction, std::string_view>{ScoreFunction::softmax, "causal"},
        {ScoreFunction::sigmoid, "none"}}) {
    const Oracle oracle(described(score, mask, 811, 811));
    const AttentionProblem& problem = oracle.problem();
    ServiceHarness harness(problem);
    LineRequest row{kHead, Quantity::weights, false, {}};
    for (int64_t i = 1; i < 811; i += 1 + i % 4) row.tokens.push_back(i);
    REQUIRE(row.tokens.size() > 3 * RowMean::kGroupRows);
    const LineRequest column{kHead, Quantity::weights, true, {3, 4, 90, 500, 810}};
    harness.want({column, row, {}, {}});
    REQUIRE(harness.wait(
        [&] { return find(harness.service(), row) && find(harness.service(), column); }));

    MemoryBudget budget(int64_t{64} << 20);
    const HeadTask task{&problem,   kHead.batch,
                        kHead.head, {0, problem.num_queries()},
                        row.tokens, {0, problem.num_keys()}};
    RowCollector rows({&task, 1}, SoftmaxDomain::all, harness.backend().workers(), budget);
    const TilePlan plan =
        plan_tiles({&task, 1}, rows.request(), harness.backend(), budget.available());
    REQUIRE(StreamingEngine(harness.backend(), budget).run({&task, 1}, plan, rows));
    CHECK(find(harness.service(), row)->values == rows.take_mean(0));

    const auto share = 1.0 / static_cast<double>(column.tokens.size());
    const ReverseTask reverse{&problem,      nullptr,
                              kHead.batch,   kHead.head,
                              column.tokens, std::vector<double>(column.tokens.size(), share)};
    ReverseQuery query({&reverse, 1}, {}, harness.backend(), budget);
    CHECK(find(harness.service(), column)->values == query.run(nullptr, {}).front());
  }
}

TEST_CASE("row norms are kept for the next time") {
  const TemporaryFolder folder;
  const Oracle oracle(described(ScoreFunction::softmax, "none", 331, 283));
  const LineRequest column{kHead, Quantity::weights, true, {7}};
  std::vector<float> values;
  for (int round = 0; round < 2; ++round) {
    ServiceHarness harness(
        oracle.problem(),
        {.memory = int64_t{64} << 20, .threads = 2, .cache_folders = {folder.path()}});
    harness.want({column, {}, {}, {}});
    REQUIRE(harness.wait([&] { return find(harness.service(), column) != nullptr; }));
    if (round == 0) values = find(harness.service(), column)->values;
    CHECK(find(harness.service(), column)->values == values);
    const auto kept = [&] {
      const std::filesystem::directory_iterator files(folder.path());
      return std::any_of(begin(files), end(files),
                         [](const auto& file) { return file.path().extension() == ".bin"; });
    };
    REQUIRE(harness.wait(kept));
    CHECK(harness.service().status().problem.empty());
  }
}

TEST_CASE("row sums that somebody else laid there are found out, said, and replaced") {
  const TemporaryFolder folder;
  const Oracle oracle(described(ScoreFunction::softmax, "none", 331, 283));
  const LineRequest column{kHead, Quantity::weights, true, {7}};
  const auto cached = [&] {
    std::string key;
    for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
      if (file.path().extension() == ".bin") key = file.path().stem().string().substr(4);
    }
    return key;
  };
  const auto column_of_a_new_service = [&](const std::string& problem) {
    ServiceHarness harness(
        oracle.problem(),
        {.memory = int64_t{64} << 20, .threads = 2, .cache_folders = {folder.path()}});
    harness.want({column, {}, {}, {}});
    const auto there = [&] {
      return find(harness.service(), column) != nullptr && !cached().empty() &&
             contains(harness.service().status().problem, problem);
    };
    REQUIRE(harness.wait(there));
    if (problem.empty()) CHECK(harness.service().status().problem.empty());
    return find(harness.service(), column)->values;
  };
  const std::vector<float> values = column_of_a_new_service("");
  std::vector<RowNorm> norms(331);
  {
    // Twice every sum: half of every weight, if it were believed.
    LseCache cache({folder.path()});
    REQUIRE(cache.load(cached(), norms));
    for (RowNorm& norm : norms) ++norm.exponent;
    REQUIRE_FALSE(cache.store(cached(), norms));
  }
  CHECK(column_of_a_new_service("not of this map") == values);
}

TEST_CASE("a head whose numbers the kernels would take for 0 is a problem, no map") {
  const std::vector<int64_t> shape{1, 2, 40, 16};
  const auto tensor = [&](const char* name, float value) {
    return HeadTensor(make_tensor(name, DType::f32, shape, std::vector<float>(1280, value)),
                      Layout::bhsd);
  };
  AttentionProblem::Parts parts;
  parts.q = tensor("q", 0x1p120f);
  parts.k = tensor("k", 0x1p-130f);
  parts.query_tokens = parts.key_tokens = TokenGrid::unknown(40);
  parts.scale = 1;
  parts.name = "small keys";
  const AttentionProblem problem = AttentionProblem::make(std::move(parts));
  ServiceHarness harness(problem);
  const TileId tile{kHead, Quantity::weights, 0, 0, 0};
  harness.want({{}, {}, {tile}, {}});
  REQUIRE(harness.wait_idle());
  CHECK_FALSE(find(harness.service(), tile));
  CHECK(contains(harness.service().problem(tile), "small keys"));
  CHECK(contains(harness.service().problem(tile), "subnormal"));
}

TEST_CASE("what the capture does not have is refused") {
  const Oracle oracle(described(ScoreFunction::softmax, "none", 331, 283));
  ServiceHarness harness(oracle.problem());
  TileService& service = harness.service();
  const auto refused_wish = [&](WishesByKind wishes, const std::string& part) {
    return refused([&] { service.want(wishes); }, ErrorCode::usage, {part});
  };
  const HeadId none{0, 0, 4};
  CHECK(refused_wish({{}, {}, {}, {none}}, "head 4") == "");
  CHECK(refused_wish({{}, {}, {{kHead, Quantity::weights, 0, 2, 0}}, {}}, "row 2") == "");
  CHECK(refused_wish({{}, {}, {{kHead, Quantity::weights, 9, 0, 0}}, {}}, "level 9") == "");
  CHECK(refused_wish({LineRequest{kHead, Quantity::weights, true, {283}}, {}, {}, {}}, "282") ==
        "");
  CHECK(refused_wish({LineRequest{kHead, Quantity::weights, false, {5, 5}}, {}, {}, {}},
                     "ascend") == "");
  WishesByKind entry;
  entry.probes = {{kHead, 331, 0}};
  CHECK(refused_wish(entry, "no entry 331, 0") == "");
  CHECK_FALSE(find(service, TileId{none, Quantity::weights, 0, 0, 0}));
  CHECK_FALSE(service.exact(none));
}
