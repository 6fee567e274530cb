#include "viewer/app/document.h"

namespace attnscope {

std::filesystem::path CaptureOrigin::name() const {
  const std::filesystem::path shown = path.empty() ? std::filesystem::path(tensors.q) : path;
  return shown.has_filename() ? shown : shown.parent_path();
}

std::unique_ptr<Document> Document::open(const CaptureOrigin& origin, const MakeTileSource& make,
                                         std::function<void()> wake) {
  Capture capture = origin.path.empty() ? Capture::from_tensors(origin.tensors, origin.facts)
                                        : Capture::open(origin.path, origin.facts);
  HeadPicker picker(capture);
  ViewLimits limits = ViewLimits::of(capture);
  ViewState start = opened_view(limits);
  auto document = std::unique_ptr<Document>(
      new Document{origin, std::move(capture), std::move(picker), std::move(limits),
                   ViewHistory(std::move(start)), nullptr, nullptr});
  document->tiles = make(document->capture, wake);
  if (!origin.facts.mask && origin.facts.score == ScoreFunction::softmax) {
    document->glance = std::make_unique<CaptureGlance>(document->capture, std::move(wake));
  }
  return document;
}

Session Document::session(int width, int height) const {
  Session session;
  session.capture =
      origin.path.empty() ? std::filesystem::path() : std::filesystem::absolute(origin.path);
  session.tensors = origin.tensors;
  session.facts = origin.facts;
  session.width = width;
  session.height = height;
  session.head = picker.values(history.now().head);
  session.view = history.now();
  return session;
}

}  // namespace attnscope
