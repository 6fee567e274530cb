// The tiles and lines of exports: what stands in the file, and what does not.
#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <mutex>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/products/differences/map_difference.h"
#include "io/export/read/stored_blocks.h"
#include "io/export/read/stored_maps.h"
#include "io/export/write/pooled_export.h"
#include "tests/support/catch.h"
#include "tests/support/export_fixture.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"
#include "tests/support/wishes.h"
#include "viewer/tiles/texels/texel_reader.h"
#include "viewer/tiles/tile_service.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const ExportWriteOptions kQuick{.force = false, .sync = false};

/// A source, and a way to wait for what it finds.
class ExportHarness {
 public:
  explicit ExportHarness(std::shared_ptr<const TexelReader> reader,
                         int64_t memory = int64_t{64} << 20)
      : source_(std::make_unique<TileService>(std::move(reader),
                                              TileService::Settings{memory, 2, {}}, [this] {
                                                const std::lock_guard lock(mutex_);
                                                woken_.notify_all();
                                              })) {}
  ~ExportHarness() { source_.reset(); }

  TileService& source() { return *source_; }
  /// Wants an entry alone and waits for it.
  ProbedEntry probe(const HeadId& head, int64_t query, int64_t key) {
    WishesByKind wishes;
    wishes.probes = {{head, query, key}};
    source_->want(wishes);
    REQUIRE(wait_idle());
    const auto found = find(*source_, wishes.probes.front());
    REQUIRE(found);
    return *found;
  }
  bool wait_idle() {
    std::unique_lock lock(mutex_);
    for (int i = 0; i < 3000; ++i) {
      if (!source_->status().busy) return true;
      woken_.wait_for(lock, std::chrono::milliseconds(20));
    }
    return false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable woken_;
  std::unique_ptr<TileService> source_;
};

/// The numbers that a texel should show: NaN where `entry` is NaN for all of its entries.
struct Texel {
  double max = std::numeric_limits<double>::quiet_NaN();
  double mean = max;
};

template <typename Entry>
Texel texel_of(const MapGeometry& g, int level, int64_t row, int64_t col, Entry entry) {
  double max = -std::numeric_limits<double>::infinity(), sum = 0, count = 0;
  bool any = false;
  for (int64_t i = row << level; i < std::min(g.rows, (row + 1) << level); ++i) {
    for (int64_t j = col << level; j < std::min(g.cols, (col + 1) << level); ++j) {
      const double value = entry(i, j);
      if (std::isnan(value)) continue;
      any = true;
      max = std::max(max, value);
      if (std::isinf(value)) continue;
      sum += value;
      ++count;
    }
  }
  if (!any) return {};
  return {max, count > 0 ? sum / count : -std::numeric_limits<double>::infinity()};
}

bool same(double got, double expected) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  if (got == expected) return true;
  return std::fabs(got - expected) <= 2e-6 * std::fabs(expected);
}

/// The first texel that differs, in words; the tile has every third row and column looked at.
template <typename Entry>
std::string differs(const MapTile& tile, const MapGeometry& g, Entry entry) {
  for (int64_t r = 0; r < tile.rows; r += 3) {
    for (int64_t c = 0; c < tile.cols; c += 3) {
      const Texel expected = texel_of(g, tile.id.level, tile.id.row * kTileSide + r,
                                      tile.id.col * kTileSide + c, entry);
      const auto at = static_cast<size_t>(r * tile.cols + c);
      const double max = tile.max[at], mean = tile.mean[at];
      if (same(max, expected.max) && same(mean, expected.mean)) continue;
      return "level " + std::to_string(tile.id.level) + ", texel " + std::to_string(r) + ", " +
             std::to_string(c) + ": " + std::to_string(max) + " and " + std::to_string(mean) +
             ", expected " + std::to_string(expected.max) + " and " + std::to_string(expected.mean);
    }
  }
  return "";
}

std::vector<TileId> all_tiles(const MapGeometry& g, const HeadId& head, Quantity quantity) {
  std::vector<TileId> tiles;
  for (int level = g.top_level; level >= 0; --level) {
    for (int64_t r = 0; r < g.tile_rows(level); ++r) {
      for (int64_t c = 0; c < g.tile_cols(level); ++c) {
        tiles.push_back({head, quantity, level, r, c});
      }
    }
  }
  return tiles;
}

template <typename Entry>
void check_all_tiles(ExportHarness& harness, const HeadId& head, Quantity quantity, Entry entry) {
  const MapGeometry g = harness.source().geometry(head);
  const std::vector<TileId> tiles = all_tiles(g, head, quantity);
  harness.source().want(WishesByKind{std::nullopt, std::nullopt, tiles, {head}});
  REQUIRE(harness.wait_idle());
  CHECK(harness.source().status().problem == "");
  CHECK(harness.source().exact(head));
  for (const TileId& id : tiles) {
    const auto tile = find(harness.source(), id);
    REQUIRE(tile);
    CHECK(tile->exact);
    CHECK(differs(*tile, g, entry) == "");
  }
}

void write_export(const ExportSpec& spec, const std::string& out, const FedValues& values,
                  const FeedOrder& order = {}) {
  const auto sink = make_export(spec, out, kQuick);
  feed(*sink, values, order);
  sink->suspend();
}

void flip(const std::string& path, int64_t offset) {
  const char old = poke(path, offset, 0);
  poke(path, offset, static_cast<char>(old ^ 0x21));
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("tiles of an exported crop show its entries and lack the rest") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  for (const bool logits : {false, true}) {
    INFO(logits);
    const auto encoding = Encoding::f32;
    ExportSpec spec =
        make_spec(calls, logits ? ExportProduct::logits : ExportProduct::weights, encoding);
    spec.calls[0].rows = {100, 623};
    spec.calls[0].keys = {31, 640};
    const FedValues values{.logits = logits};
    const std::string out = folder / (logits ? "logits.h5" : "weights.h5");
    write_export(spec, out, values);
    const std::shared_ptr<const TexelReader> reader = read_export_texels(out);
    REQUIRE(reader->calls().size() == 1);
    const MapSource& call = reader->calls()[0];
    CHECK(call.heads == std::vector<int64_t>{0, 1});
    CHECK(call.rows == IndexRange{100, 623});
    CHECK(call.cols == IndexRange{31, 640});
    CHECK(call.queries.tokens() == 700);
    CHECK(call.weights != logits);
    CHECK(call.logits == logits);
    ExportHarness harness(reader);
    const auto entry = [&](int64_t i, int64_t j) {
      if (!call.rows.contains(i) || !call.cols.contains(j)) return kNaN;
      return static_cast<double>(values.entry(1, i - 100, j - 31));
    };
    const Quantity quantity = logits ? Quantity::logits : Quantity::weights;
    check_all_tiles(harness, {0, 0, 1}, quantity, entry);
    const ProbedEntry probed = harness.probe({0, 0, 1}, 400, 77);
    CHECK(same(logits ? probed.logit : probed.weight, entry(400, 77)));
    CHECK(std::isnan(harness.probe({0, 0, 1}, 99, 77).weight));
    CHECK(std::isnan(harness.probe({0, 0, 1}, 99, 77).logit));
    for (const bool reverse : {false, true}) {
      const LineRequest request{{0, 0, 1}, quantity, reverse, {200, 201, 260}};
      harness.source().want(WishesByKind{request, std::nullopt, {}, {}});
      REQUIRE(harness.wait_idle());
      const auto line = find(harness.source(), request);
      REQUIRE(line);
      REQUIRE(line->values.size() == 700);
      for (int64_t i = 0; i < 700; ++i) {
        double sum = 0, count = 0;
        for (const int64_t token : request.tokens) {
          const double value = reverse ? entry(i, token) : entry(token, i);
          if (value == -std::numeric_limits<double>::infinity()) continue;
          sum += value;
          ++count;
        }
        const double expected = count > 0 ? sum / count : -std::numeric_limits<double>::infinity();
        INFO(i);
        REQUIRE(same(line->values[static_cast<size_t>(i)], expected));
      }
    }
    WishesByKind wrong;
    wrong.tiles = {{{0, 0, 1}, logits ? Quantity::weights : Quantity::logits, 0, 0, 0}};
    CHECK_THROWS_AS(harness.source().want(wrong), Error);
    CHECK_THROWS_AS(harness.source().geometry({0, 0, 2}), Error);
    CHECK_THROWS_AS(harness.source().geometry({1, 0, 0}), Error);
  }
}

TEST_CASE("maps of two exports are subtracted entry by entry, where both have them") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  const FedValues values;
  for (const char* name : {"a.h5", "b.h5"}) {
    ExportSpec spec = make_spec(calls, ExportProduct::weights, Encoding::f32);
    // The second lacks some rows and keys.
    if (name[0] == 'b') {
      spec.calls[0].rows = {100, 623};
      spec.calls[0].keys = {31, 640};
    }
    write_export(spec, folder / name, values);
  }
  const std::shared_ptr<const TexelReader> reader =
      join_texels(read_export_texels(folder / "a.h5"), read_export_texels(folder / "b.h5"));
  REQUIRE(reader->calls().size() == 2);
  const HeadId a{0, 0, 1}, b{1, 0, 0};
  ExportHarness harness(reader);
  const auto of_b = [&](int64_t i, int64_t j) {
    const bool there = i >= 100 && i < 623 && j >= 31 && j < 640;
    return there ? static_cast<double>(values.entry(0, i - 100, j - 31)) : kNaN;
  };
  CHECK(same(harness.probe(b, 400, 77).weight, of_b(400, 77)));
  const Against against{b, Difference::absolute};
  const MapGeometry g = harness.source().geometry(a);
  std::vector<TileId> tiles = all_tiles(g, a, Quantity::weights);
  for (TileId& each : tiles) each.against = against;
  WishesByKind wishes;
  wishes.tiles = tiles;
  wishes.exact_differences = {{a, Quantity::weights, against}};
  wishes.divergence = HeadsCompared{a, b};
  harness.source().want(wishes);
  REQUIRE(harness.wait_idle());
  CHECK(harness.source().status().problem == "");
  const auto difference = [&](int64_t i, int64_t j) {
    return std::abs(static_cast<double>(values.entry(1, i, j)) - of_b(i, j));
  };
  for (const TileId& id : tiles) {
    const auto tile = find(harness.source(), id);
    REQUIRE(tile);
    CHECK(tile->exact);
    CHECK(differs(*tile, g, difference) == "");
  }
  // No row is there as a whole in both.
  const auto cut = find(harness.source(), HeadsCompared{a, b});
  REQUIRE(cut);
  CHECK(std::all_of(cut->rows.begin(), cut->rows.end(), [](double v) { return std::isnan(v); }));
  wishes = {};
  wishes.divergence = HeadsCompared{a, {0, 0, 0}};
  harness.source().want(wishes);
  REQUIRE(harness.wait_idle());
  const auto whole = find(harness.source(), *wishes.divergence);
  REQUIRE(whole);
  CHECK(whole->exact);
  for (const int64_t row : {1, 250, 699}) {
    std::vector<float> first(700), second(700);
    for (int64_t j = 0; j < 700; ++j) {
      first[static_cast<size_t>(j)] = values.entry(1, row, j);
      second[static_cast<size_t>(j)] = values.entry(0, row, j);
    }
    const double expected = compare_rows(first, second).divergence;
    INFO(row);
    CHECK(same(whole->rows[static_cast<size_t>(row)], expected));
  }
}

TEST_CASE("tiles of an unfinished export show what is there") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  const ExportSpec spec = make_spec(calls, ExportProduct::weights, Encoding::f32);
  const FedValues values;
  write_export(spec, folder / "out.h5", values, {.segment_chunks = 1, .stop_after = 3});
  const auto maps = std::make_shared<const StoredMaps>(folder / "out.h5.part");
  const ChunkGrid grid = maps->heads()[0].group->grid;
  ExportHarness harness(read_texels(maps));
  int64_t there = 0;
  check_all_tiles(harness, {0, 0, 0}, Quantity::weights, [&](int64_t i, int64_t j) {
    if (!maps->has_chunk(maps->heads()[0], i / grid.chunk_rows, j / grid.chunk_cols)) return kNaN;
    ++there;
    return static_cast<double>(values.entry(0, i, j));
  });
  CHECK(there > 0);
}

TEST_CASE("single rows are seen from afar and can be pointed at") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  ExportSpec spec = make_spec(calls, ExportProduct::rows, Encoding::f32);
  const std::vector<int64_t> list{3, 200, 201, 699};
  spec.calls[0].row_list = list;
  const FedValues values;
  write_export(spec, folder / "rows.h5", values);
  const std::shared_ptr<const TexelReader> reader = read_export_texels(folder / "rows.h5");
  CHECK(reader->calls()[0].first_row == 201);
  ExportHarness harness(reader);
  check_all_tiles(harness, {0, 0, 0}, Quantity::weights, [&](int64_t i, int64_t j) {
    const auto found = std::find(list.begin(), list.end(), i);
    if (found == list.end()) return kNaN;
    return static_cast<double>(values.entry(0, found - list.begin(), j));
  });
}

TEST_CASE("a damaged export is told, and the rest of it shown") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  const ExportSpec spec = make_spec(calls, ExportProduct::weights, Encoding::f32);
  write_export(spec, folder / "out.h5", {});
  const int64_t place = read_manifest(folder / "out.h5").groups[0].places.entries;
  flip(folder / "out.h5", place + 5);
  ExportHarness harness(read_export_texels(folder / "out.h5"));
  harness.source().want(WishesByKind{std::nullopt, std::nullopt, {}, {{0, 0, 0}}});
  REQUIRE(harness.wait_idle());
  CHECK(harness.source().status().problem.find("not what was written") != std::string::npos);
  CHECK_FALSE(harness.source().exact({0, 0, 0}));
  const LineRequest last{{0, 0, 0}, Quantity::weights, false, {690}};
  harness.source().want(WishesByKind{last, std::nullopt, {}, {}});
  REQUIRE(harness.wait_idle());
  CHECK(harness.source().status().problem == "");
  CHECK(find(harness.source(), last));
}

TEST_CASE("little memory is enough for tiles one after the other") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  const ExportSpec spec = make_spec(calls, ExportProduct::weights, Encoding::f32);
  const FedValues values;
  write_export(spec, folder / "out.h5", values);
  ExportHarness small(read_export_texels(folder / "out.h5"), 1000);
  small.source().want(WishesByKind{std::nullopt, std::nullopt, {}, {{0, 0, 0}}});
  REQUIRE(small.wait_idle());
  CHECK(small.source().status().problem != "");
  ExportHarness harness(read_export_texels(folder / "out.h5"), int64_t{14} << 20);
  for (const int64_t head : {0, 1, 0}) {
    harness.source().want(WishesByKind{std::nullopt, std::nullopt, {}, {{0, 0, head}}});
    REQUIRE(harness.wait_idle());
    CHECK(harness.source().status().problem == "");
    CHECK(harness.source().exact({0, 0, head}));
    CHECK(harness.source().status().host_bytes <= int64_t{14} << 20);
  }
}

TEST_CASE("blocks of a pooled export are shown in their places") {
  const TemporaryFolder folder;
  const std::vector calls{make_call(joint_facts())};
  for (const int64_t block : {16, 50}) {
    INFO(block);
    ExportSpec spec = make_spec(calls, ExportProduct::pooled, Encoding::f32);
    spec.detail = PoolBlocks{block, false};
    spec.calls[0].rows = {20, 700};
    spec.calls[0].keys = {32, 650};
    spec.options_json = R"({"rows":"20:700","cols":"32:650"})";
    const std::string out = folder / (std::to_string(block) + ".h5");
    const int64_t rows = ceil_div(680, block), cols = ceil_div(618, block);
    const auto max_of = [](int64_t head, int64_t r, int64_t c) {
      return static_cast<float>(1 + head) / static_cast<float>(2 + r * 7 + c * 3);
    };
    {
      const auto sink = make_pooled_export(spec, out, kQuick);
      for (int64_t head = 0; head < 2; ++head) {
        for (int64_t r = 0; r < rows; ++r) {
          std::vector<float> max;
          std::vector<double> sum;
          const int64_t height = std::min(block, 680 - r * block);
          for (int64_t c = 0; c < cols; ++c) {
            max.push_back(max_of(head, r, c));
            const int64_t width = std::min(block, 618 - c * block);
            sum.push_back(0.25 * max.back() * static_cast<double>(height * width));
          }
          sink->block_row(head, r, max, sum);
        }
        sink->head(head, {});
      }
      sink->end();
    }
    const auto blocks = std::make_shared<const StoredBlocks>(out);
    REQUIRE(blocks->groups().size() == 1);
    CHECK(blocks->groups()[0].rows == IndexRange{20, 700});
    CHECK(blocks->groups()[0].cols == IndexRange{32, 650});
    ExportHarness harness(read_texels(blocks));
    const MapSource call = read_texels(blocks)->calls()[0];
    CHECK(call.block == block);
    CHECK_FALSE(call.logits);
    const HeadId head{0, 0, 1};
    const MapGeometry g = harness.source().geometry(head);
    const std::vector<TileId> tiles = all_tiles(g, head, Quantity::weights);
    harness.source().want(WishesByKind{std::nullopt, std::nullopt, tiles, {head}});
    REQUIRE(harness.wait_idle());
    CHECK(harness.source().status().problem == "");
    // Each entry counts with its block's mean, and is at most its block's largest.
    const auto value = [&](int64_t i, int64_t j) {
      if (i < 20 || j < 32 || j >= 650) return kNaN;
      return static_cast<double>(max_of(1, (i - 20) / block, (j - 32) / block));
    };
    for (const TileId& id : tiles) {
      const auto tile = find(harness.source(), id);
      REQUIRE(tile);
      for (int64_t r = 0; r < tile->rows; r += 5) {
        for (int64_t c = 0; c < tile->cols; c += 5) {
          const Texel expected =
              texel_of(g, id.level, id.row * kTileSide + r, id.col * kTileSide + c, value);
          const auto at = static_cast<size_t>(r * tile->cols + c);
          REQUIRE(same(tile->max[at], expected.max));
          REQUIRE(same(tile->mean[at], 0.25 * expected.mean));
        }
      }
    }
    const ProbedEntry probed = harness.probe(head, 400, 77);
    CHECK(probed.block == block);
    CHECK(same(probed.weight, value(400, 77)));
    CHECK(same(probed.mean, 0.25 * value(400, 77)));
    CHECK(std::isnan(harness.probe(head, 3, 77).weight));
    WishesByKind subtracted;
    subtracted.exact_differences = {{head, Quantity::weights, {{0, 0, 0}, Difference::absolute}}};
    CHECK_THROWS_AS(harness.source().want(subtracted), Error);
    CHECK_THROWS_AS(harness.source().want(WishesByKind{
                        LineRequest{head, Quantity::weights, false, {400}}, {}, {}, {}}),
                    Error);
    // One flipped byte is found when the file is opened.
    flip(out, blocks->groups()[0].mean_place + 9);
    CHECK_THROWS_AS(StoredBlocks(out), Error);
  }
}
