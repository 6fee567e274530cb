#include "viewer/tiles/capture_tiles.h"

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "io/capture/capture_growth.h"
#include "io/files/input_set.h"
#include "io/pictures/png_reader.h"
#include "viewer/tiles/map_call.h"

namespace attnscope {
namespace {

/// A picture of the capture's video.
GreyImage read_picture(const Capture& capture, int64_t number) {
  return read_png_grey(*capture.open_frame(capture.frames().at(static_cast<size_t>(number))));
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
    return read_picture(*of, number);
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

CaptureTiles::CaptureTiles(const Capture& capture, const TileBackend& backend, Settings settings,
                           bool follow, std::function<void()> wake)
    : CaptureTiles(capture, backend, std::move(settings), follow, std::make_shared<Grown>(),
                   std::move(wake)) {}

CaptureTiles::CaptureTiles(const Capture& capture, const TileBackend& backend, Settings settings,
                           bool follow, const std::shared_ptr<Grown>& grown,
                           std::function<void()> wake)
    : TileService(map_calls(capture), backend,
                  with_sources(std::move(settings), capture, follow, grown), std::move(wake)),
      grown_(grown) {}

TileService::Settings CaptureTiles::with_sources(Settings settings, const Capture& capture,
                                                 bool follow, const std::shared_ptr<Grown>& grown) {
  grown->take(capture);
  settings.sources = grown->sources;
  settings.call_stamps = [grown] { return grown->stamps(); };
  const bool pictures = follow || !capture.frames().empty();
  if (pictures) settings.read_frame = [grown](int64_t n) { return grown->read_frame(n); };
  return settings;
}

void CaptureTiles::add_capture(const Capture& more) {
  add(map_calls(more), more.held_bytes());
  grown_->take(more);
}

std::unique_ptr<TileService> tiles_of_two(const Capture& capture, const Capture& second,
                                          const TileBackend& backend,
                                          TileService::Settings settings,
                                          std::function<void()> wake) {
  settings.sources = capture.inputs();
  settings.other_sources = second.inputs();
  if (!capture.frames().empty()) {
    settings.read_frame = [&capture](int64_t number) { return read_picture(capture, number); };
  }
  settings.call_stamps = [&capture] { return capture.call_stamps(); };
  std::vector<MapCall> calls = map_calls(capture);
  settings.kept_calls = static_cast<int64_t>(calls.size());
  const std::vector<MapCall> more = map_calls(second);
  calls.insert(calls.end(), more.begin(), more.end());
  return std::make_unique<TileService>(calls, backend, settings, std::move(wake));
}

}  // namespace attnscope
