#include "viewer/app/document.h"

#include "core/base/error.h"
#include "io/capture/partial_calls.h"
#include "io/export/format/export_manifest.h"
#include "viewer/tiles/texels/export_texels.h"
#include "viewer/view/window_size.h"

namespace attnscope {

std::filesystem::path CaptureOrigin::name() const {
  const std::filesystem::path shown = path.empty() ? std::filesystem::path(tensors.q) : path;
  return shown.has_filename() ? shown : shown.parent_path();
}

namespace {

std::unique_ptr<Document> make_document(const CaptureOrigin& origin, std::optional<Capture> capture,
                                        const std::vector<MapSource>& calls) {
  HeadPicker picker(calls);
  ViewLimits limits = ViewLimits::of(calls);
  ViewState start = opened_view(limits);
  return std::unique_ptr<Document>(new Document{origin, std::move(capture), calls,
                                                std::move(picker), std::move(limits),
                                                ViewHistory(std::move(start)), nullptr, nullptr});
}

}  // namespace

std::unique_ptr<Document> Document::open(const CaptureOrigin& origin, const ReadControl& control,
                                         const TileSourceMaker& make, std::function<void()> wake) {
  if (!origin.path.empty() && is_export_file(origin.path)) {
    if (origin.facts.any()) {
      throw usage_error(
          origin.path.string() +
          ": is an export, whose maps are computed already; facts belong to captures");
    }
    std::shared_ptr<const TexelReader> reader = read_export_texels(origin.path);
    auto document = make_document(origin, std::nullopt, reader->calls());
    document->tiles = make.of_export(std::move(reader), std::move(wake));
    return document;
  }
  auto stop = std::make_unique<DocumentStop>(control.stop);
  ReadControl own = control;
  own.stop = stop->token();
  Capture capture = origin.path.empty() ? Capture::from_tensors(origin.tensors, origin.facts, own)
                                        : Capture::open(origin.path, origin.facts, own);
  require_whole_calls(capture);
  const std::vector<MapSource> calls = map_sources(capture);
  auto document = make_document(origin, std::move(capture), calls);
  document->stop = std::move(stop);
  for (const FrameFile& frame : document->capture->frames()) document->pictures.push_back(frame.t);
  document->tiles = make.of_capture(*document->capture, wake);
  if (make.check && !origin.facts.mask && origin.facts.score == ScoreFunction::softmax) {
    document->quick_check = make.check(*document->capture, std::move(wake));
  }
  return document;
}

Session Document::session(int width, int height) const {
  Session session;
  session.capture =
      origin.path.empty() ? std::filesystem::path() : std::filesystem::absolute(origin.path);
  session.tensors = origin.tensors;
  session.facts = origin.facts;
  const WindowSize size = clamped({width, height});
  session.width = size.width;
  session.height = size.height;
  session.head = picker.values(history.now().head);
  session.view = history.now();
  return session;
}

}  // namespace attnscope
