// Texels on their way from a device to a window's textures, on the emulated CUDA and a real OpenGL.
// Needs a display: run by ctest under xvfb-run.
#include <cmath>

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/stream/device_facet.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/host/device_backend.h"
#include "tests/cuda/emulation/control.h"
#include "tests/cuda/emulation/graphics.h"
#include "tests/support/catch.h"
#include "tests/support/reference_call.h"
#include "tests/support/service_harness.h"
#include "tests/support/temporary_folder.h"
#include "viewer/app/viewer_app.h"

namespace attnscope::test {
namespace {

namespace emulation = cuda::emulation;

/// Large enough for a level 0 that is not kept whole: nine tiles by nine, ragged at the far edges.
constexpr int64_t kTokens = 2300;

Window::Settings hidden() {
  Window::Settings settings;
  settings.size = WindowSize{640, 480};
  settings.visible = false;
  return settings;
}

std::unique_ptr<TileBackend> emulated_backend() {
  emulation::reset();
  CudaModuleOptions options;
  options.threads = 2;
  options.fallback = make_cpu_backend({.threads = 2});
  return make_device_backend(options);
}

/// A window, a map on an emulated device, and its textures.
struct DeviceWindow {
  static AttentionCase described(std::string_view mask) {
    return {.shape = {1, 1, 1, kTokens, kTokens, 16},
            .dtype = DType::bf16,
            .mask = mask,
            .amplitude = 2};
  }
  static const Oracle& oracle() {
    static const Oracle the_oracle(described("none"));
    return the_oracle;
  }
  static const Oracle& causal_oracle() {
    static const Oracle the_oracle(described("causal"));
    return the_oracle;
  }

  Window window{hidden()};
  ServiceHarness harness;
  TileTextures textures{64 * gl::TexturePool::kSlotBytes};
  std::vector<std::string> told;

  explicit DeviceWindow(const Oracle& of = oracle())
      : harness(of.problem(), {.memory = int64_t{128} << 20, .threads = 2, .cache_folders = {}},
                emulated_backend()) {}

  void link() {
    textures.set_link(harness.backend().device()->link_textures(),
                      [this](const std::string& line) { told.push_back(line); });
  }

  void compute(const std::vector<TileId>& tiles) {
    harness.want({{}, {}, tiles, {}});
    const auto is_there = [&](const TileId& id) { return find(harness.service(), id) != nullptr; };
    const bool done = harness.wait([&] {
      return !harness.service().status().problem.empty() ||
             std::all_of(tiles.begin(), tiles.end(), is_there);
    });
    INFO(harness.service().status().problem);
    REQUIRE(done);
    REQUIRE(std::all_of(tiles.begin(), tiles.end(), is_there));
  }

  /// Computes the tiles and uploads them.
  void bring(const std::vector<TileId>& tiles) {
    compute(tiles);
    CHECK_FALSE(textures.upload(harness.service(), tiles, 1e6));
  }

  /// How many of a tile's numbers in its texture are not those of the host.
  int64_t wrong(const TileId& id) {
    const TileTextures::Drawn drawn = textures.use(id);
    const MapTile& tile = *drawn.tile;
    const auto pairs =
        textures.pool().read(drawn.slot, static_cast<int>(tile.rows), static_cast<int>(tile.cols));
    const bool logs = id.quantity == Quantity::weights;
    const auto differ = [&](uint16_t bits, float value) {
      const float seen = to_float(f16{bits});
      const float expected = to_float(to_f16(texel_number(value, logs)));
      if (seen == expected) return false;
      return !(std::fabs(seen - expected) <= 0x1p-9f * std::max(1.0f, std::fabs(expected)));
    };
    int64_t count = 0;
    for (size_t i = 0; i < tile.max.size(); ++i) {
      count += differ(pairs[2 * i], tile.max[i]) || differ(pairs[2 * i + 1], tile.mean[i]) ? 1 : 0;
    }
    return count;
  }
};

TileId tile_at(int64_t row, int64_t col, Quantity quantity = Quantity::weights) {
  return {{}, quantity, 0, row, col};
}

}  // namespace

TEST_CASE("tiles go from an emulated device straight to their textures") {
  DeviceWindow w;
  w.link();
  CHECK(w.textures.upload_way() == "measuring");
  const std::vector<TileId> tiles{tile_at(0, 0), tile_at(1, 1), tile_at(8, 4, Quantity::logits),
                                  tile_at(8, 0), tile_at(8, 8)};
  w.bring(tiles);
  CHECK(w.told.empty());
  CHECK(emulation::counters().graphics_resources == 1);
  CHECK(w.textures.pool().uploads() == 5);
  const MapReference reference(DeviceWindow::oracle(), {}, Quantity::weights);
  for (const TileId& id : tiles) {
    INFO(id.row << ", " << id.col);
    CHECK(w.wrong(id) == 0);
    const auto tile = find(w.harness.service(), id);
    CHECK(tile->device != nullptr);
    CHECK(tile->exact);
    if (id.quantity == Quantity::weights) CHECK(reference.differs(*tile) == "");
  }
  // Every other one came that way, pair by pair.
  const uint64_t bytes = emulation::counters().bytes_within_device;
  CHECK(bytes == uint64_t{256 * 256 + 252 * 256 + 252 * 252} * 4);
  // On the screen they are not needed on the device any more; a second time they are staged.
  w.textures.clear();
  CHECK_FALSE(w.textures.upload(w.harness.service(), tiles, 1e6));
  CHECK(emulation::counters().bytes_within_device == bytes);
  for (const TileId& id : tiles) CHECK(w.wrong(id) == 0);
  w.textures.set_link(nullptr, {});
  CHECK(emulation::counters().graphics_resources == 0);
}

TEST_CASE("tiles with masked entries come from the host, which knows them, and others straight") {
  DeviceWindow w(DeviceWindow::causal_oracle());
  w.link();
  const std::vector<TileId> tiles{
      tile_at(0, 0), tile_at(1, 0), tile_at(0, 3), tile_at(8, 8), tile_at(8, 8, Quantity::logits),
      tile_at(8, 2)};
  w.bring(tiles);
  CHECK(w.told.empty());
  const MapReference reference(DeviceWindow::causal_oracle(), {}, Quantity::weights);
  for (const TileId& id : tiles) {
    INFO(id.row << ", " << id.col);
    CHECK(w.wrong(id) == 0);
    const auto tile = find(w.harness.service(), id);
    const bool logits = id.quantity == Quantity::logits;
    CHECK((tile->device != nullptr) == (logits || id.row > id.col));
    if (!logits) CHECK(reference.differs(*tile) == "");
  }
}

TEST_CASE("the faster way to the textures is kept, and either brings the same") {
  DeviceWindow w;
  w.link();
  std::vector<TileId> tiles;
  for (int64_t i = 0; i < 2 * UploadChoice::kTrials + 2; ++i) {
    tiles.push_back(tile_at(i / 4, i % 4));
  }
  w.bring(tiles);
  CHECK(w.told.empty());
  const bool linked = w.textures.upload_way() == "interop";
  CHECK((linked || w.textures.upload_way() == "staging"));
  CHECK(emulation::counters().graphics_resources == (linked ? 1 : 0));
  for (const TileId& id : tiles) {
    INFO(id.row << ", " << id.col);
    CHECK(w.wrong(id) == 0);
  }
}

TEST_CASE("a window that no device draws has its tiles from the host") {
  DeviceWindow w;
  emulation::set_window_device(-1);
  std::string message;
  try {
    w.link();
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::unavailable);
    message = e.what();
  }
  CHECK(message.find("cuda: no CUDA device draws the window: ") == 0);
  CHECK(w.textures.upload_way() == "staging");
  w.bring({tile_at(0, 0)});
  CHECK(w.wrong(tile_at(0, 0)) == 0);
  // Nobody shows texels, so none are kept.
  CHECK(find(w.harness.service(), tile_at(0, 0))->device == nullptr);
  emulation::set_window_device(0);
  CHECK(make_cpu_backend({.threads = 1})->device() == nullptr);
}

TEST_CASE("graphics that fail are told once, and the tiles come from the host for good") {
  // Registering, mapping, finding the layer, and unmapping.
  for (const int nth : {2, 3, 4, 5}) {
    DeviceWindow w;
    emulation::fail(emulation::Call::kGraphics, nth, cudaErrorOperatingSystem);
    w.link();
    w.bring({tile_at(0, 0), tile_at(1, 0)});
    INFO("call " << nth);
    REQUIRE(w.told.size() == 1);
    CHECK(w.told[0].find("tiles come to the window through the host: cuda: ") == 0);
    CHECK(w.told[0].find("cudaErrorOperatingSystem") != std::string::npos);
    CHECK(w.textures.upload_way() == "staging");
    CHECK(emulation::counters().graphics_resources == 0);
    CHECK(w.wrong(tile_at(0, 0)) == 0);
    CHECK(w.wrong(tile_at(1, 0)) == 0);
  }
}

TEST_CASE("a device that writes something else to a texture is found out") {
  DeviceWindow w;
  emulation::Graphics graphics = emulation::opengl_graphics();
  // As if layers were counted otherwise.
  graphics.write = [write = graphics.write](unsigned texture, unsigned target,
                                            emulation::TextureRect rect, const void* texels) {
    rect.layer += 1;
    write(texture, target, rect, texels);
  };
  emulation::set_graphics(graphics);
  w.link();
  w.bring({tile_at(0, 0), tile_at(1, 0)});
  emulation::set_graphics(emulation::opengl_graphics());
  REQUIRE(w.told.size() == 1);
  CHECK(w.told[0].find("what the device has written is not what was computed") !=
        std::string::npos);
  CHECK(w.textures.upload_way() == "staging");
  CHECK(w.wrong(tile_at(0, 0)) == 0);
  CHECK(w.wrong(tile_at(1, 0)) == 0);
}

TEST_CASE("texels that the device had to drop are staged") {
  DeviceWindow w;
  w.link();
  const std::vector<TileId> tiles{tile_at(0, 0), tile_at(3, 2)};
  w.compute(tiles);
  for (const TileId& id : tiles) {
    const auto tile = find(w.harness.service(), id);
    REQUIRE(tile);
    REQUIRE(tile->device);
    tile->device->release();
  }
  CHECK_FALSE(w.textures.upload(w.harness.service(), tiles, 1e6));
  CHECK(w.told.empty());
  CHECK(w.textures.upload_way() == "measuring");
  CHECK(emulation::counters().bytes_within_device == 0);
  for (const TileId& id : tiles) CHECK(w.wrong(id) == 0);
}

namespace {

/// The window over a capture, computed by the backend, when nothing is left to do.
gl::ReadPixels picture_of(const std::string& capture, const TileBackend& backend) {
  Window window{hidden()};
  ViewerApp::Settings settings;
  settings.scripted_mouse = true;
  if (const DeviceFacet* const device = backend.device(); device != nullptr) {
    settings.link_textures = [device] { return device->link_textures(); };
  }
  std::vector<std::string> notes;
  settings.note = [&](const std::string& note) { notes.push_back(note); };
  settings.make_source.of_capture = [&](const Capture& opened, std::function<void()> wake) {
    return std::make_unique<TileService>(map_calls(opened), backend,
                                         TileService::Settings{int64_t{1} << 30, 2, {}},
                                         std::move(wake));
  };
  ViewerApp app(window, settings);
  app.open(std::filesystem::path(capture));
  app.act(action::SetRect{{100, 400, 200, 500}});
  const double limit = app.seconds() + 100;
  // The map in small is exact when the head's pass is done.
  const auto done = [&] { return app.reached(WaitFor::exact) && app.reached(WaitFor::idle); };
  while (!done() && app.seconds() < limit) app.step(0.02);
  REQUIRE(done());
  CHECK(app.level() == 0);
  CHECK(notes.empty());
  return app.picture();
}

}  // namespace

TEST_CASE("a window on an emulated device shows what it shows on the CPU") {
  const TemporaryFolder folder;
  ReferenceCall({.queries = kTokens, .keys = kTokens, .width = 16}, 7, false)
      .write(folder / "call.safetensors");
  const gl::ReadPixels expected =
      picture_of(folder / "call.safetensors", *make_cpu_backend({.threads = 2}));
  const gl::ReadPixels got = picture_of(folder / "call.safetensors", *emulated_backend());
  CHECK(emulation::counters().bytes_within_device > 0);
  CHECK(emulation::launches_of("pool_tiles") > 0);
  REQUIRE(got.pixels.size() == expected.pixels.size());
  // The status line at the bottom tells how the work stands.
  const size_t looked_at = static_cast<size_t>(got.width) * static_cast<size_t>(got.height - 32);
  size_t different = 0;
  for (size_t i = 0; i < looked_at; ++i) {
    const Rgb a = got.pixels[i];
    const Rgb b = expected.pixels[i];
    const int worst = std::max({std::abs(a.r - b.r), std::abs(a.g - b.g), std::abs(a.b - b.b)});
    different += worst > 4 ? 1 : 0;
  }
  CHECK(different < looked_at / 1000);
}

}  // namespace attnscope::test
