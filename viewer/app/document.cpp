#include "viewer/app/document.h"

#include "core/base/error.h"
#include "io/capture/capture_growth.h"
#include "io/capture/capture_guard.h"
#include "io/capture/partial_calls.h"
#include "viewer/session/remote_place.h"
#include "viewer/view/comparison.h"
#include "viewer/view/window_size.h"

namespace attnscope {

namespace {

/// `own`: how many of the calls are the first one's.
std::unique_ptr<Document> make_document(const CaptureOrigin& origin, std::vector<MapSource> calls,
                                        int64_t own) {
  const auto all = static_cast<int64_t>(calls.size());
  HeadPicker picker(calls, {0, own});
  HeadPicker other_picker(calls, all > own ? IndexRange{own, all} : IndexRange{0, own});
  ViewLimits limits = ViewLimits::of(calls);
  ViewState start = opened_view(limits);
  return std::unique_ptr<Document>(new Document{origin,
                                                nullptr,
                                                {},
                                                {},
                                                std::nullopt,
                                                std::move(calls),
                                                own,
                                                std::move(picker),
                                                std::move(other_picker),
                                                std::move(limits),
                                                ViewHistory(std::move(start)),
                                                nullptr,
                                                nullptr,
                                                nullptr});
}

std::unique_ptr<Document> open_remote(const CaptureOrigin& origin, const TileSourceMaker& make,
                                      std::function<void()> wake,
                                      const std::filesystem::path& second) {
  if (!make.of_remote) {
    throw Error(ErrorCode::unavailable,
                origin.path.string() + ": there is no way to other machines here");
  }
  return Document::of_remote(origin, make.of_remote(origin, second, std::move(wake)), second);
}

/// Both are here, or both there.
bool is_remote(const CaptureOrigin& origin, const std::filesystem::path& second) {
  const bool first = is_remote_name(origin.path.string());
  if (!second.empty() && is_remote_name(second.string()) != first) {
    throw usage_error("what is compared lies on one machine: " + one_line(origin.name().string()) +
                      " and " + one_line(second.string()) + " do not");
  }
  return first;
}

}  // namespace

std::vector<std::filesystem::path> Document::guarded() const {
  std::vector<std::filesystem::path> paths;
  if (remote != nullptr) return paths;
  for (const CaptureOrigin* of : {&origin, &other_origin}) {
    if (!of->path.empty()) paths.push_back(of->path);
  }
  const auto add = [&](const Capture& of) {
    const auto more = guarded_inputs(of);
    paths.insert(paths.end(), more.begin(), more.end());
  };
  if (capture) add(*capture);
  for (const auto& later : added) add(*later);
  if (other) add(*other);
  return paths;
}

std::unique_ptr<Document> Document::of_remote(const CaptureOrigin& origin,
                                              std::unique_ptr<RemoteTileSource> tiles,
                                              const std::filesystem::path& second) {
  const RemoteHello& hello = tiles->hello();
  auto document = make_document(origin, hello.calls, hello.own_calls);
  document->limits.computed = hello.computed;
  document->other_origin.path = second;
  document->pictures = hello.pictures;
  document->remote = tiles.get();
  document->tiles = std::move(tiles);
  return document;
}

std::unique_ptr<Document> Document::open(const CaptureOrigin& origin, const ReadControl& control,
                                         const TileSourceMaker& make, std::function<void()> wake,
                                         const std::filesystem::path& second) {
  if (is_remote(origin, second)) return open_remote(origin, make, std::move(wake), second);
  auto stop = std::make_unique<DocumentStop>(control.stop);
  ReadControl own = control;
  own.stop = stop->token();
  OpenedMaps maps = OpenedMaps::open(origin, own, second);
  auto document = make_document(origin, std::move(maps.calls), maps.own_calls);
  document->other_origin.path = second;
  if (maps.exported) {
    document->limits.computed = false;
    document->tiles = make.of_export(std::move(maps.exported), std::move(wake));
    return document;
  }
  document->capture = std::move(maps.capture);
  document->other = std::move(maps.other);
  document->stop = std::move(stop);
  document->tiles = document->other ? make.of_two(*document->capture, *document->other, wake)
                                    : make.of_capture(*document->capture, wake);
  document->take_pictures(*document->capture);
  if (make.check && !origin.facts.mask && origin.facts.score == ScoreFunction::softmax) {
    document->quick_check = make.check(*document->capture, std::move(wake));
  }
  return document;
}

void Document::add(const RemoteAdded& more) {
  if (more.pictures) pictures = *more.pictures;
  take_sources(more.calls);
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
  take_sources(sources);
}

void Document::take_sources(const std::vector<MapSource>& sources) {
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
  pictures = picture_frames(of);
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
  state.magnifier = state.magnifier || magnifies;
  if (!state.order.is_stored()) state.order_number = tiles->order_number(placed(state).places());
  return state;
}

Session Document::session(int width, int height) const {
  Session session;
  const auto whole = [this](const std::filesystem::path& name) {
    const bool as_it_is = name.empty() || remote != nullptr;
    return as_it_is ? name : std::filesystem::absolute(name);
  };
  session.capture = whole(origin.path);
  session.tensors = origin.tensors;
  session.facts = origin.facts;
  const WindowSize size = clamped({width, height});
  session.width = size.width;
  session.height = size.height;
  session.view = history.now();
  if (has_second()) session.other_capture = whole(other_origin.path);
  return session;
}

std::string Document::title() const {
  const auto name = [](const CaptureOrigin& of) { return one_line(of.name().filename().string()); };
  return name(origin) + (has_second() ? " | " + name(other_origin) : "") + " \u2014 attnscope";
}

}  // namespace attnscope
