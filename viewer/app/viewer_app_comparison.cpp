#include "viewer/app/viewer_app.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

KeyChord command_chord(CommandId id) { return parse_chord(command_of(id).chords.front()); }

}  // namespace

void ViewerApp::open_other(const std::filesystem::path& path) {
  if (!document_) throw usage_error("no capture is open");
  auto document = Document::open(
      document_->origin, settings_.read_control, settings_.make_source,
      [window = window_] { window->wake(); }, path);
  // Heads of an earlier second capture are none of this one.
  ViewState now = document_->history.now();
  now = apply_action(now, action::DropOther{}, document_->limits);
  // Of a capture that has grown, calls may stand in another order.
  const HeadId head = document->picker.find(document_->picker.values(now.head));
  const CallLimits& before = document_->limits.of_call(now.head);
  now.head = head;
  if (!(document->limits.of_call(head) == before)) now = opened_view(document->limits);
  document->history.restart(std::move(now));
  document->take_nearest_other();
  show(std::move(document));
}

void ViewerApp::release(const KeyChord& chord) {
  // With or without the keys that were held beside it.
  if (chord.key == command_chord(CommandId::hold_other).key) show_other(false);
  if (chord.key == command_chord(CommandId::magnify).key) magnify(false);
}

void ViewerApp::magnify(bool on) {
  if (!document_ || document_->magnifies == on) return;
  document_->magnifies = on;
  changed_ = true;
  window_->request_frames();
}

void ViewerApp::show_other(bool on) {
  if (!document_ || document_->shows_other == on) return;
  document_->shows_other = on;
  changed_ = true;
  window_->request_frames();
}

std::optional<ViewerApp::Divergence> ViewerApp::divergence() const {
  if (!frame_ || !frame_->divergence()) return std::nullopt;
  const RowDivergence& found = *frame_->divergence();
  Divergence divergence{.rows = static_cast<double>(found.computed)};
  double sum = 0, largest = 0, rows = 0;
  for (const double each : found.rows) {
    if (std::isnan(each)) continue;
    sum += each;
    largest = std::max(largest, each);
    rows += 1;
  }
  if (rows == 0) return divergence;
  divergence.mean = sum / rows;
  divergence.largest = largest;
  return divergence;
}

std::optional<ProbedEntry> ViewerApp::probe_other(int64_t query, int64_t key) {
  document_->require_unchanged();
  return frame_->probe_other(query, key);
}

}  // namespace attnscope
