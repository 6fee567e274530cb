#include "viewer/app/document.h"

#include "core/base/error.h"
#include "io/capture/capture_growth.h"
#include "io/capture/partial_calls.h"
#include "io/export/format/export_manifest.h"
#include "viewer/tiles/texels/export_texels.h"
#include "viewer/tiles/texels/joined_texels.h"
#include "viewer/view/comparison.h"
#include "viewer/view/window_size.h"

namespace attnscope {

std::filesystem::path CaptureOrigin::name() const {
  const std::filesystem::path shown = path.empty() ? std::filesystem::path(tensors.q) : path;
  return shown.has_filename() ? shown : shown.parent_path();
}

namespace {

/// `own`: how many of the calls are the first one's.
std::unique_ptr<Document> make_document(const CaptureOrigin& origin,
                                        std::shared_ptr<const Capture> capture,
                                        std::optional<Capture> other, std::vector<MapSource> calls,
                                        int64_t own) {
  const auto all = static_cast<int64_t>(calls.size());
  HeadPicker picker(calls, {0, own});
  HeadPicker other_picker(calls, all > own ? IndexRange{own, all} : IndexRange{0, own});
  ViewLimits limits = ViewLimits::of(calls);
  ViewState start = opened_view(limits);
  return std::unique_ptr<Document>(new Document{origin,
                                                std::move(capture),
                                                {},
                                                {},
                                                std::move(other),
                                                std::move(calls),
                                                own,
                                                std::move(picker),
                                                std::move(other_picker),
                                                std::move(limits),
                                                ViewHistory(std::move(start)),
                                                nullptr,
                                                nullptr});
}

/// An export, and perhaps a second one that is compared with it.
std::unique_ptr<Document> open_exports(const CaptureOrigin& origin, const TileSourceMaker& make,
                                       std::function<void()> wake,
                                       const std::filesystem::path& second) {
  if (origin.facts.any()) {
    throw usage_error(origin.path.string() +
                      ": is an export, whose maps are computed already; facts belong to captures");
  }
  std::shared_ptr<const TexelReader> reader = read_export_texels(origin.path);
  const auto own = static_cast<int64_t>(reader->calls().size());
  if (!second.empty()) reader = join_texels(std::move(reader), read_export_texels(second));
  auto document = make_document(origin, nullptr, std::nullopt, reader->calls(), own);
  document->limits.computed = false;
  document->other_origin.path = second;
  document->tiles = make.of_export(std::move(reader), std::move(wake));
  return document;
}

/// What is read and what is computed have no pair of numbers that one source brings.
void check_both_alike(const CaptureOrigin& origin, const std::filesystem::path& second) {
  const bool first_read = !origin.path.empty() && is_export_file(origin.path);
  if (first_read == is_export_file(second)) return;
  const std::string exported = first_read ? origin.path.string() : second.string();
  const std::string capture = first_read ? second.string() : origin.name().string();
  throw usage_error(exported + ": is an export, and " + capture +
                    " a capture: compare two captures, or two exports");
}

/// A capture, which the window shows beside another.
Capture open_second(const std::filesystem::path& path, const FactOverrides& facts,
                    const ReadControl& control) {
  Capture capture = Capture::open(path, facts, control);
  require_whole_calls(capture);
  return capture;
}

}  // namespace

std::unique_ptr<Document> Document::open(const CaptureOrigin& origin, const ReadControl& control,
                                         const TileSourceMaker& make, std::function<void()> wake,
                                         const std::filesystem::path& second) {
  if (!second.empty()) check_both_alike(origin, second);
  if (!origin.path.empty() && is_export_file(origin.path)) {
    return open_exports(origin, make, std::move(wake), second);
  }
  auto stop = std::make_unique<DocumentStop>(control.stop);
  ReadControl own = control;
  own.stop = stop->token();
  Capture capture = origin.path.empty() ? Capture::from_tensors(origin.tensors, origin.facts, own)
                                        : Capture::open(origin.path, origin.facts, own);
  require_whole_calls(capture);
  std::optional<Capture> other;
  if (!second.empty()) other.emplace(open_second(second, origin.facts, own));
  std::vector<MapSource> calls = map_sources(capture);
  const auto own_calls = static_cast<int64_t>(calls.size());
  if (other) {
    const std::vector<MapSource> more = map_sources(*other);
    calls.insert(calls.end(), more.begin(), more.end());
  }
  auto document = make_document(origin, std::make_shared<const Capture>(std::move(capture)),
                                std::move(other), std::move(calls), own_calls);
  document->stop = std::move(stop);
  document->other_origin.path = second;
  document->tiles = document->other ? make.of_two(*document->capture, *document->other, wake)
                                    : make.of_capture(*document->capture, wake);
  document->take_pictures(*document->capture);
  if (make.check && !origin.facts.mask && origin.facts.score == ScoreFunction::softmax) {
    document->quick_check = make.check(*document->capture, std::move(wake));
  }
  return document;
}

void Document::add(const std::shared_ptr<const Capture>& more, const TileSourceMaker& make) {
  require_whole_calls(*more);
  const std::vector<MapSource> sources = map_sources(*more);
  added.push_back(more);
  try {
    make.add(*tiles, *more);
  } catch (...) {
    added.pop_back();
    throw;
  }
  if (sources.empty()) return;
  calls.insert(calls.end(), sources.begin(), sources.end());
  own_calls = static_cast<int64_t>(calls.size());
  picker.add(sources);
  other_picker.add(sources);
  for (const CallLimits& call : ViewLimits::of(sources).calls) limits.calls.push_back(call);
}

bool Document::take_pictures(const Capture& of) {
  if (pictured != nullptr && !keeps_pictures(*pictured, of)) return false;
  pictured = &of;
  pictures.clear();
  for (const FrameFile& frame : of.frames()) pictures.push_back(frame.t);
  return true;
}

void Document::take_nearest_other() {
  const HeadId nearest = other_picker.nearest_to(picker.values(history.now().head));
  history.restart(apply_action(history.now(), action::SetOther{nearest}, limits));
}

ViewState Document::shown() const {
  const ViewState& now = history.now();
  ViewState state = now;
  if (shows_other && now.other) {
    state = seen_as_other(now);
  } else if (preview && *preview != now.head) {
    state = apply_action(now, action::SelectHead{*preview}, limits);
  }
  if (!state.order.is_stored()) state.order_number = tiles->order_number(placed(state).places());
  return state;
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
  if (has_second()) session.other_capture = std::filesystem::absolute(other_origin.path);
  if (session.view.other) session.other_head = other_picker.values(session.view.other->head);
  return session;
}

}  // namespace attnscope
