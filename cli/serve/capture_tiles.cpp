#include "cli/serve/capture_tiles.h"

#include <utility>

#include "cli/common/cache_option.h"
#include "io/capture/capture_growth.h"
#include "io/files/input_set.h"
#include "io/pictures/png_reader.h"
#include "viewer/tiles/map_call.h"

namespace attnscope {
namespace {

/// Reads the capture's pictures of its video; empty where it has none. Borrows it.
std::function<GreyImage(int64_t)> frame_reader(const Capture& capture) {
  if (capture.frames().empty()) return {};
  return [&capture](int64_t number) {
    return read_png_grey(*capture.open_frame(capture.frames().at(static_cast<size_t>(number))));
  };
}

}  // namespace

/// The captures whose calls are served, and the input files they are read from.
struct CaptureTiles::Grown {
  std::shared_ptr<InputSet> sources = std::make_shared<InputSet>();
  std::mutex mutex;
  std::vector<const Capture*> captures;
  const Capture* pictured = nullptr;

  void take(const Capture& capture) {
    sources->include(capture.inputs());
    const std::lock_guard lock(mutex);
    captures.push_back(&capture);
    // As Document::take_pictures().
    if (pictured == nullptr || keeps_pictures(*pictured, capture)) pictured = &capture;
  }
  GreyImage read_frame(int64_t number) {
    const Capture* of = nullptr;
    {
      const std::lock_guard lock(mutex);
      of = pictured;
    }
    return read_png_grey(*of->open_frame(of->frames().at(static_cast<size_t>(number))));
  }
  std::vector<std::string> stamps() {
    std::vector<const Capture*> now;
    {
      const std::lock_guard lock(mutex);
      now = captures;
    }
    std::vector<std::string> all;
    for (const Capture* capture : now) {
      for (std::string& stamp : capture->call_stamps()) all.push_back(std::move(stamp));
    }
    return all;
  }
};

CaptureTiles::CaptureTiles(const Capture& capture, const TileBackend& backend,
                           const TilesOptions& options, std::function<void()> wake)
    : CaptureTiles(capture, backend, options, std::make_shared<Grown>(), std::move(wake)) {}

CaptureTiles::CaptureTiles(const Capture& capture, const TileBackend& backend,
                           const TilesOptions& options, const std::shared_ptr<Grown>& grown,
                           std::function<void()> wake)
    : TileService(map_calls(capture), backend, settings(capture, options, grown), std::move(wake)),
      grown_(grown) {}

TileService::Settings CaptureTiles::settings(const Capture& capture, const TilesOptions& options,
                                             const std::shared_ptr<Grown>& grown) {
  grown->take(capture);
  Settings service;
  service.memory = memory_beside(capture, options.run).bytes;
  service.threads = options.run.threads;
  service.cache_folders = cache_folders(options.cache, capture);
  service.sources = grown->sources;
  service.call_stamps = [grown] { return grown->stamps(); };
  const bool pictures = options.follow || !capture.frames().empty();
  if (pictures) service.read_frame = [grown](int64_t n) { return grown->read_frame(n); };
  return service;
}

void CaptureTiles::add_capture(const Capture& more) {
  add(map_calls(more), more.held_bytes());
  grown_->take(more);
}

std::unique_ptr<TileService> tiles_of_two(const Capture& capture, const Capture& second,
                                          const TileBackend& backend, const TilesOptions& options,
                                          std::function<void()> wake) {
  TileService::Settings service;
  // One account for both.
  service.memory = memory_beside(capture, options.run).bytes - counted_bytes(second);
  service.threads = options.run.threads;
  service.cache_folders = cache_folders(options.cache, capture);
  service.sources = capture.inputs();
  service.read_frame = frame_reader(capture);
  service.call_stamps = [&capture] { return capture.call_stamps(); };
  std::vector<MapCall> calls = map_calls(capture);
  service.kept_calls = static_cast<int64_t>(calls.size());
  service.other_cache_folders = cache_folders(options.cache, second);
  service.other_sources = second.inputs();
  const std::vector<MapCall> more = map_calls(second);
  calls.insert(calls.end(), more.begin(), more.end());
  return std::make_unique<TileService>(calls, backend, service, std::move(wake));
}

std::unique_ptr<TileService> tiles_of_export(std::shared_ptr<const TexelReader> reader,
                                             const TileBackend& backend,
                                             const TilesOptions& options,
                                             std::function<void()> wake) {
  TileService::Settings service;
  service.memory = memory_limit(options.run);
  service.threads = options.run.threads > 0 ? options.run.threads : backend.workers();
  return std::make_unique<TileService>(std::move(reader), service, std::move(wake));
}

std::unique_ptr<QuickCheck> quick_check_of(const Capture& capture, const TileBackend& backend,
                                           const TilesOptions& options,
                                           std::function<void()> wake) {
  // Beside the tiles that are kept: for a moment, a head.
  const int64_t memory = memory_beside(capture, options.run).bytes;
  return std::make_unique<QuickCheck>(capture, backend, memory / 8, std::move(wake));
}

}  // namespace attnscope
