// Texels that the CUDA backend pools, against the window's own pooling of the same entries. On the
// emulation.
#include <cmath>

#include "core/base/error.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/host/device_backend.h"
#include "kernels/cuda/host/head/lane.h"
#include "kernels/cuda/host/textures/texel_keeper.h"
#include "tests/cuda/emulation/control.h"
#include "tests/support/backend/attention_case.h"
#include "tests/support/catch.h"
#include "viewer/tiles/jobs/worker_scratch.h"
#include "viewer/tiles/texels/texel_row.h"

namespace attnscope::test {
namespace {

namespace emulation = cuda::emulation;

constexpr float kNone = -std::numeric_limits<float>::infinity();

/// A head on an emulated device, and one thread that works with it.
struct TexelBench {
  std::vector<std::string> notices;
  std::unique_ptr<TileBackend> backend;
  std::unique_ptr<WorkerScratch> scratch;

  TexelBench(const Oracle& oracle, int major, int64_t vram_bytes = 0) {
    emulation::reset();
    emulation::Device device;
    device.major = major;
    device.minor = major == 7 ? 5 : 0;
    emulation::set_devices({device});
    CudaModuleOptions options;
    options.vram_bytes = vram_bytes;
    options.fallback = make_cpu_backend({.threads = 1});
    options.notice = [this](const std::string& line) { notices.push_back(line); };
    backend = make_device_backend(options);
    scratch = std::make_unique<WorkerScratch>(
        *backend, int64_t{64} << 20,
        [this](int64_t bytes, std::string_view what) { return budget_.reserve(bytes, what); });
    auto map = std::make_shared<BoundMap>();
    map->bind(*backend, oracle.problem(), {.head = oracle.problem().num_heads() - 1});
    scratch->bind_to(map);
  }

 private:
  MemoryBudget budget_{int64_t{1} << 30};
};

/// Texels of a rectangle, [rows, cols].
struct Texels {
  int64_t rows = 0, cols = 0;
  std::vector<float> max, mean;

  Texels(IndexRange of_rows, IndexRange of_keys, int level)
      : rows((of_rows.size() + (int64_t{1} << level) - 1) >> level),
        cols((of_keys.size() + (int64_t{1} << level) - 1) >> level),
        max(static_cast<size_t>(rows * cols), NAN),
        mean(max) {}
};

struct Rect {
  IndexRange rows, keys;
};

/// Entry by entry, as FineTileJob does.
Texels pooled_by_host(WorkerScratch& scratch, const Rect& rect, Quantity quantity, int level) {
  Texels texels(rect.rows, rect.keys, level);
  std::vector<RowNorm> norms(static_cast<size_t>(rect.rows.size()));
  const int64_t side = int64_t{1} << level;
  const float* entries =
      scratch.entries(scratch.read(rect.rows), norms, false, rect.keys, quantity);
  for (int64_t r = 0; r < texels.rows; ++r) {
    TexelRow row(texels.cols, quantity);
    const int64_t height = std::min(side, rect.rows.size() - r * side);
    for (int64_t i = 0; i < height; ++i, entries += rect.keys.size()) {
      row.add(entries, rect.keys.size(), side);
    }
    for (int64_t c = 0; c < texels.cols; ++c) {
      const auto at = static_cast<size_t>(r * texels.cols + c);
      texels.max[at] = row.max[static_cast<size_t>(c)];
      texels.mean[at] = row.mean(c, height * std::min(side, rect.keys.size() - c * side));
    }
  }
  return texels;
}

bool pool(WorkerScratch& scratch, const Rect& rect, Quantity quantity, int level, Texels& texels) {
  std::vector<RowNorm> norms(
      needs_norms(scratch.problem().score(), quantity) ? static_cast<size_t>(rect.rows.size()) : 0);
  bool known = false;
  return scratch.pool(rect.rows, norms, known, {quantity, level, rect.keys},
                      {texels.max.data(), texels.mean.data(), texels.cols, nullptr, 0});
}

/// The largest numbers are the same bits, and means differ by less than the sums' rounding.
void check_equal(const Texels& got, const Texels& expected, double magnitude) {
  REQUIRE(got.max.size() == expected.max.size());
  size_t wrong = 0;
  for (size_t i = 0; i < got.max.size(); ++i) {
    const bool same_max = got.max[i] == expected.max[i];
    const double mean = expected.mean[i];
    const bool same_mean = got.mean[i] == expected.mean[i] ||
                           std::fabs(static_cast<double>(got.mean[i]) - mean) <= 4e-6 * magnitude;
    if (same_max && same_mean) continue;
    if (++wrong > 3) continue;
    INFO("texel " << i / static_cast<size_t>(got.cols) << ", " << i % static_cast<size_t>(got.cols)
                  << ": " << got.max[i] << " " << got.mean[i] << ", expected " << expected.max[i]
                  << " " << expected.mean[i]);
    CHECK(same_max);
    CHECK(same_mean);
  }
  CHECK(wrong == 0);
}

/// The size that errors of means are relative to: the largest logit, or largest weight / 16.
double magnitude_of(const Texels& texels, Quantity quantity) {
  double most = 0;
  for (const float value : texels.max) {
    if (std::isfinite(value)) most = std::max(most, std::fabs(static_cast<double>(value)));
  }
  return quantity == Quantity::logits ? std::max(most, 4.0) : most / 16;
}

/// Rows and keys of the rectangles end within a tile, and with the map within a texel.
const Rect kRect{{32, 300}, {512, 1490}};

}  // namespace

TEST_CASE("texels that a device pools are those of the entries that it emits") {
  struct Choice {
    int major;
    DType dtype;
    ScoreFunction score;
    std::string_view mask;
  };
  for (const Choice& c : {Choice{8, DType::bf16, ScoreFunction::softmax, "none"},
                          Choice{8, DType::f16, ScoreFunction::softmax, "causal"},
                          Choice{8, DType::f16, ScoreFunction::softmax, "masked_rows"},
                          Choice{8, DType::bf16, ScoreFunction::sigmoid, "window"},
                          Choice{7, DType::f16, ScoreFunction::softmax, "dense_float"},
                          Choice{7, DType::f32, ScoreFunction::softmax, "dense_bool"},
                          Choice{8, DType::f32, ScoreFunction::linear_elu1, "none"}}) {
    const Oracle oracle(
        {.shape = {1, 2, 1, 300, 1490, 64}, .dtype = c.dtype, .score = c.score, .mask = c.mask});
    TexelBench scratch(oracle, c.major);
    for (const Quantity quantity : {Quantity::weights, Quantity::logits}) {
      if (quantity == Quantity::logits && is_linear(c.score)) continue;
      for (int level = 0; level <= 5; ++level) {
        INFO(oracle.text() << " on " << c.major << ", "
                           << (quantity == Quantity::weights ? "weights" : "logits") << ", level "
                           << level);
        const Texels expected = pooled_by_host(*scratch.scratch, kRect, quantity, level);
        Texels got(kRect.rows, kRect.keys, level);
        REQUIRE(pool(*scratch.scratch, kRect, quantity, level, got));
        check_equal(got, expected, magnitude_of(expected, quantity));
      }
    }
    CHECK(scratch.notices.empty());
  }
}

TEST_CASE("a mask leaves texels of nothing but masked logits, and they have no mean") {
  const Oracle oracle({.shape = {1, 1, 1, 128, 1024, 64}, .dtype = DType::f16, .mask = "causal"});
  TexelBench scratch(oracle, 8);
  const Rect rect{{0, 128}, {0, 1024}};
  Texels texels(rect.rows, rect.keys, 3);
  REQUIRE(pool(*scratch.scratch, rect, Quantity::logits, 3, texels));
  CHECK(std::isfinite(texels.max[0]));
  CHECK(std::isfinite(texels.mean[0]));
  // Queries 0 ... 7 see none of the keys from 8 on.
  CHECK(texels.max[1] == kNone);
  CHECK(texels.mean[1] == kNone);
  REQUIRE(pool(*scratch.scratch, rect, Quantity::weights, 3, texels));
  CHECK(texels.max[1] == 0);
  CHECK(texels.mean[1] == 0);
}

TEST_CASE("texels do not depend on how the work is cut") {
  const Oracle oracle({.shape = {1, 1, 1, 300, 1490, 64}, .dtype = DType::bf16});
  const Rect whole{{0, 300}, {0, 1490}};
  Texels expected(whole.rows, whole.keys, 4);
  {
    TexelBench scratch(oracle, 8);
    REQUIRE(pool(*scratch.scratch, whole, Quantity::weights, 4, expected));
  }
  size_t seen = 0;
  for (const int64_t limit : {int64_t{700} << 10, int64_t{600} << 10, int64_t{500} << 10}) {
    TexelBench scratch(oracle, 8, limit);
    Texels got(whole.rows, whole.keys, 4);
    INFO("limit " << limit);
    if (!pool(*scratch.scratch, whole, Quantity::weights, 4, got)) continue;
    ++seen;
    CHECK(got.max == expected.max);
    CHECK(got.mean == expected.mean);
  }
  CHECK(seen > 0);
  // A rectangle of the same.
  TexelBench scratch(oracle, 8);
  const Rect part{{128, 256}, {1024, 1490}};
  Texels got(part.rows, part.keys, 4);
  REQUIRE(pool(*scratch.scratch, part, Quantity::weights, 4, got));
  for (int64_t r = 0; r < got.rows; ++r) {
    for (int64_t c = 0; c < got.cols; ++c) {
      const auto at = static_cast<size_t>((r + 8) * expected.cols + c + 64);
      CHECK(got.mean[static_cast<size_t>(r * got.cols + c)] == expected.mean[at]);
    }
  }
}

TEST_CASE("only texels leave the device") {
  const Oracle oracle({.shape = {1, 1, 1, 256, 2048, 64}, .dtype = DType::bf16});
  TexelBench scratch(oracle, 8);
  const Rect rect{{0, 256}, {0, 2048}};
  Texels texels(rect.rows, rect.keys, 4);
  // The first time the device is checked.
  REQUIRE(pool(*scratch.scratch, rect, Quantity::logits, 4, texels));
  const auto before = emulation::counters();
  REQUIRE(pool(*scratch.scratch, rect, Quantity::logits, 4, texels));
  const auto after = emulation::counters();
  CHECK(after.bytes_to_host - before.bytes_to_host == texels.max.size() * 2 * sizeof(float));
  CHECK(emulation::launches_of("pool_tiles") > 0);
}

TEST_CASE("a device without memory for texels leaves them to the caller") {
  const Oracle oracle({.shape = {1, 1, 1, 300, 1490, 64}, .dtype = DType::bf16});
  const Rect whole{{0, 300}, {0, 1490}};
  const Texels expected = [&] {
    TexelBench plenty(oracle, 8);
    return pooled_by_host(*plenty.scratch, whole, Quantity::weights, 1);
  }();
  int halved = 0;
  int refused = 0;
  for (int64_t limit = int64_t{1} << 20; limit > 10000; limit = limit * 3 / 4) {
    TexelBench scratch(oracle, 8, limit);
    INFO("limit " << limit);
    Texels got(whole.rows, whole.keys, 1);
    const bool pooled = pool(*scratch.scratch, whole, Quantity::weights, 1, got);
    // Norms that the CPU has computed have other last bits.
    const bool elsewhere = std::any_of(
        scratch.notices.begin(), scratch.notices.end(),
        [](const std::string& line) { return line.find("on the CPU") != std::string::npos; });
    if (pooled && !elsewhere) {
      check_equal(got, expected, 1e-2);
      halved += scratch.notices.empty() ? 0 : 1;
    } else if (!pooled) {
      ++refused;
      CHECK_FALSE(scratch.notices.empty());
    }
    CHECK(static_cast<int64_t>(emulation::counters().peak_device_bytes) <= limit);
  }
  CHECK(halved > 0);
  CHECK(refused > 0);
}

TEST_CASE("a device's texels give way to whatever else needs its memory") {
  emulation::reset();
  cuda::Device device(0, int64_t{8} << 20, 0);
  cuda::TexelKeeper keeper(device);
  CHECK(keeper.make(256, 256) == nullptr);  // nobody shows them
  keeper.set_wanted(true);
  CHECK(keeper.make(257, 256) == nullptr);
  std::vector<std::shared_ptr<cuda::KeptTexels>> kept;
  while (auto texels = keeper.make(256, 256)) kept.push_back(std::move(texels));
  CHECK(kept.size() == 32);
  const auto nothing = [](const cuda::TexelBuffer&) {};
  CHECK(kept.front()->use(nothing));
  void* const memory = device.allocate(int64_t{1} << 20);
  REQUIRE(memory != nullptr);
  CHECK_FALSE(kept.front()->use(nothing));
  CHECK(device.used_bytes() == int64_t{1} << 20);
  // Texels that are released lose their memory to the next, and can no longer be read.
  const auto first = keeper.make(256, 256);
  REQUIRE(first != nullptr);
  const int64_t used = device.used_bytes();
  first->release();
  CHECK_FALSE(first->use(nothing));
  CHECK(keeper.make(16, 16) != nullptr);
  CHECK(device.used_bytes() == used);
  // A window that is closed wants none.
  device.release(memory, int64_t{1} << 20);
  keeper.set_wanted(false);
  CHECK(device.used_bytes() == 0);
  CHECK_THROWS_AS(device.allocate(int64_t{9} << 20), cuda::OutOfDeviceMemory);
}

TEST_CASE("no more texels wait on a device than a window may want") {
  emulation::reset();
  cuda::Device device(0, 0, 0);
  cuda::TexelKeeper keeper(device);
  keeper.set_wanted(true);
  std::vector<std::shared_ptr<cuda::KeptTexels>> kept;
  for (int i = 0; i <= cuda::TexelKeeper::kMostTiles; ++i) kept.push_back(keeper.make(256, 256));
  const auto nothing = [](const cuda::TexelBuffer&) {};
  CHECK_FALSE(kept[0]->use(nothing));
  CHECK(kept[1]->use(nothing));
  CHECK(kept.back()->use(nothing));
  CHECK(device.used_bytes() == cuda::TexelKeeper::kMostTiles * cuda::TexelBuffer::kBytes);
}

}  // namespace attnscope::test
