// Going through the recorded steps.
#include "viewer/app/viewer_app.h"

#include "core/base/error.h"

namespace attnscope {

/// True where the map is complete, however coarse, or not seen at all.
bool ViewerApp::is_picture_there() const {
  if (!document_ || changed_) return false;
  return !is_map_seen() || panels_.matrix().seen().complete;
}

/// True unless the query's row is all that there is to be seen, and is still to come.
bool ViewerApp::is_line_there() const {
  const std::optional<ViewPane>& pane = document_->history.now().maximised;
  const bool alone = pane == ViewPane::query || pane == ViewPane::volume;
  return !alone || !frame_->line_pending() || !frame_->line_problem().empty();
}

void ViewerApp::play(bool on) {
  if (!document_) throw usage_error("no capture is open");
  if (on) {
    player_.start(seconds(), document_->history.now().timeline.speed);
  } else {
    player_.stop();
    document_->history.end_gesture();
  }
  window_->request_frames();
}

/// The last step that was recorded, of what is shown.
void ViewerApp::go_to_newest() {
  const HeadId here = document_->history.now().head;
  const HeadId newest = Timeline::of(document_->own(), here).newest();
  if (newest != here) act(action::Scrub{newest});
}

/// The next step, where playing has come to it.
void ViewerApp::advance() {
  if (!playing() || !document_) return;
  // From the head that is chosen, whatever the mouse points at.
  const ViewState& now = document_->history.now();
  const Timeline timeline = Timeline::of(document_->own(), now.head);
  const auto head =
      player_.next(timeline, now.timeline, is_picture_there() && is_line_there(), seconds());
  if (head) act(action::Scrub{*head});
  if (!playing()) window_->request_frames();
}

}  // namespace attnscope
