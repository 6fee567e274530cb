#include "viewer/app/viewer_app.h"

#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>
#include <span>

#include "core/base/error.h"
#include "io/capture/computable.h"
#include "viewer/session/session_paths.h"
#include "viewer/view/view_actions.h"

// How captures, exports and sessions come into the window, and what is added to them.

namespace attnscope {
namespace {

bool has_atlas_of_many(const Document& document) {
  const HeadId& head = document.history.now().head;
  if (!document.calls[static_cast<size_t>(head.call)].weights) return false;
  const auto lines = atlas_lines(document.own(), head);
  return document.tiles->offers(SketchRequest{}) &&
         (lines.size() > 1 || lines.front().heads.size() > 1);
}

/// True where the head that is seen has the prompt's words, and numbers for them.
bool has_prompt(const Document& document) {
  const HeadId& head = document.history.now().head;
  const MapSource& call = document.call_of(head);
  return call.weights && !call.tokens.empty() && document.limits.of_call(head).text > 0 &&
         document.tiles->offers(MassRequest{});
}

/// Shows what the capture has.
void show_by_data(Document& document) {
  const auto apply = [&](const Action& action) {
    document.history.restart(apply_action(document.history.now(), action, document.limits));
  };
  if (has_atlas_of_many(document)) apply(action::SetAtlas{{.shown = true}});
  if (has_prompt(document)) apply(action::SetWords{{.shown = true}});
  if (!document.pictures.empty()) {
    apply(action::SetFilm{{.over = true, .mode = FilmMode::contour}});
  }
}

}  // namespace

void ViewerApp::open(const CaptureOrigin& origin, const std::filesystem::path& second) {
  begin_with(Document::open(
      origin, settings_.read_control, settings_.make_source, [window = window_] { window->wake(); },
      second));
}

void ViewerApp::open(const CaptureOrigin& origin, std::unique_ptr<RemoteTileSource> tiles) {
  begin_with(Document::of_remote(origin, std::move(tiles)));
}

/// As it is seen first.
void ViewerApp::begin_with(std::unique_ptr<Document> document) {
  if (document->has_second()) document->take_nearest_other();
  if (settings_.begin_by_data) show_by_data(*document);
  show(std::move(document));
}

void ViewerApp::open(const std::filesystem::path& path) {
  if (!is_session_file(path)) {
    open(CaptureOrigin{path, {}, {}});
    return;
  }
  const StoredSession session = read_session(path);
  auto document = Document::open(
      {session.capture, session.tensors, session.facts}, settings_.read_control,
      settings_.make_source, [window = window_] { window->wake(); }, session.other_capture);
  document->history.restart(restored_view(session, document->session_heads()));
  show(std::move(document));
  settings_.session = path;
}

void ViewerApp::show(std::unique_ptr<Document> document) {
  keep_picture();
  if (settings_.theme) {
    document->history.apply(action::SetTheme{*settings_.theme}, document->limits, seconds());
  }
  // A session of what was open before is no place to save this one's.
  const CaptureOrigin* const before = document_ ? &document_->origin : following_.awaited();
  if (before != nullptr && before->name() != document->origin.name()) settings_.session.clear();
  film_player_.stop();
  saving_.give_up();
  // The old workers end before the old capture does, and before anything of the new one is drawn.
  following_.end();
  frame_.reset();
  player_.stop();
  again_at_.reset();
  document_ = std::move(document);
  if (sample_ && document_->origin.path != sample_->capture()) sample_.reset();
  frame_.emplace(*document_, [window = window_] { window->wake(); });
  textures_.clear();
  panels_.atlas().forget();
  counters_.first_picture_ms.reset();
  counters_.query_ms.reset();
  counters_.frame_ms_max = counters_.frame_cpu_ms_max = 0;
  opened_at_ = clock_.milliseconds();
  changed_ = true;
  if (document_->other) tell_warnings(*document_->other);
  for (const Capture* capture : std::initializer_list<const Capture*>{
           document_->capture.get(), document_->other ? &*document_->other : nullptr}) {
    const std::string unknown = capture == nullptr ? "" : not_understood_text(*capture);
    if (!unknown.empty()) tell(one_line(capture->path().string()) + ": " + unknown);
  }
  if (document_->remote != nullptr) {
    for (const std::string& warning : document_->remote->hello().warnings) tell_warning(warning);
  }
  letters_ = shown_letters(document_->calls);
  window_->set_letters(letters_);
  window_->set_title(document_->title());
  if (!sample_ && start_.keeps(*document_)) start_.remember(*document_);
  picture_kept_ = false;
  watch_kept_folders();
  window_->request_frames();
  if (settings_.follow) following_.follow(*document_);
}

void ViewerApp::open_sample() {
  std::unique_ptr<SampleCapture> before = std::move(sample_);
  try {
    sample_ = std::make_unique<SampleCapture>();
    open(CaptureOrigin{sample_->capture(), {}, {}});
  } catch (const Error& e) {
    sample_ = std::move(before);
    fail("The sample cannot be made", e.what());
  }
}

void ViewerApp::save_sample(const std::filesystem::path& out) {
  try {
    if (sample_ && sample_->holds(out)) {
      throw usage_error(told_path(out) +
                        ": lies in the sample's own folder, which goes with the window");
    }
    SampleCapture::write(out);
    open(CaptureOrigin{out, {}, {}});
    tell("the sample is saved: " + told_path(out));
  } catch (const Error& e) {
    fail("The sample cannot be saved", e.what());
  }
}

void ViewerApp::watch_kept_folders() {
  new_folders_.clear();
  if (!settings_.kept_in || !document_->capture || sample_) return;
  for (const std::filesystem::path& folder : settings_.kept_in(*document_->capture)) {
    std::error_code ignored;
    if (!std::filesystem::exists(folder, ignored)) new_folders_.push_back(folder);
  }
}

/// Says once which folder was made for what is kept.
void ViewerApp::tell_kept_folder() {
  for (const std::filesystem::path& folder : new_folders_) {
    std::error_code ignored;
    if (!std::filesystem::exists(folder, ignored)) continue;
    tell("row sums and the heads' pictures are kept for the next time: " + told_path(folder));
    new_folders_.clear();
    return;
  }
}

void ViewerApp::await(const CaptureOrigin& origin, std::function<void(Document&)> opened) {
  following_.await(origin, std::move(opened));
  window_->request_frames();
}

void ViewerApp::open_awaited() {
  const CaptureOrigin origin = *following_.awaited();
  auto prepare_first = following_.take_prepare();
  try {
    open(origin);
    tell_warnings(*document_->capture);
    following_.set_prepare(std::move(prepare_first));
    prepare();
  } catch (const Error& e) {
    // The capture that was waited for is there, but cannot be shown.
    following_.end();
    fail("This capture cannot be opened", e.what());
  }
}

/// Tells the warnings of a capture that nobody has read before the window.
void ViewerApp::tell_warnings(const Capture& capture) {
  for (const std::string& warning : capture.warnings()) tell_warning(warning);
}

void ViewerApp::tell_warning(const std::string& warning) {
  tell(warning);
  if (settings_.warn) settings_.warn(warning);
}

/// Prepares the view that was to be shown first, as soon as its calls are there.
void ViewerApp::prepare() {
  const std::string problem = following_.prepare(*document_);
  if (!problem.empty()) tell("not there yet: " + problem);
}

/// Letters of calls that were added, which nothing that is shown had yet.
void ViewerApp::take_letters(std::span<const MapSource> added) {
  const std::u32string letters = shown_letters(added);
  if (std::includes(letters_.begin(), letters_.end(), letters.begin(), letters.end())) return;
  letters_ = shown_letters(document_->calls);
  window_->set_letters(letters_);
}

/// Takes what came to the document since the last frame, and tells of it; opens what was waited
/// for.
void ViewerApp::take_added() {
  if (following_.has_begun()) return open_awaited();
  if (!document_) return;
  try {
    tell_added(following_.take(*document_, settings_.make_source));
  } catch (const Error& e) {
    following_.end();
    fail("The capture is not followed any more", e.what());
  }
}

void ViewerApp::tell_added(const AddedToDocument& added) {
  for (const std::string& warning : added.warnings) tell_warning(warning);
  if (added.pictures_replaced) {
    tell("the capture's pictures of its video were replaced: open it again to see them");
  } else if (added.pictures) {
    tell(fmt::format("the capture has {} pictures of its video now", document_->pictures.size()));
  }
  if (added.calls > 0) {
    take_letters(
        std::span<const MapSource>(document_->calls).last(static_cast<size_t>(added.calls)));
    prepare();
    changed_ = true;
    if (document_->history.now().timeline.follow) go_to_newest();
    tell(std::to_string(added.calls) +
         (added.calls == 1 ? " call was added: " : " calls were added: ") +
         std::to_string(document_->calls.size()) + " now");
  }
  if (!added.problem.empty()) fail("What is added to the capture cannot be read", added.problem);
}

void ViewerApp::try_open(const std::filesystem::path& path) {
  try {
    open(path);
  } catch (const Error& e) {
    fail("This capture cannot be opened", e.what());
  }
}

void ViewerApp::try_open_other(const std::filesystem::path& path) {
  try {
    open_other(path);
  } catch (const Error& e) {
    fail("This capture cannot be opened beside the other", e.what());
  }
}

}  // namespace attnscope
