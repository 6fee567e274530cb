#include "viewer/app/viewer_app.h"

#include "core/base/error.h"
#include "viewer/script/place_words.h"

// Where one is, as the toolbar's field has it.

namespace attnscope {

SettingPlace ViewerApp::setting_place() const {
  return {.state = document_->history.now(),
          .picker = &document_->picker,
          .others = &document_->other_picker,
          .moments = film_moments()};
}

/// All of it, as one step of undo, or nothing.
void ViewerApp::go_to_place(const std::string& text) {
  place_problem_.clear();
  const SettingPlace here = setting_place();
  window_->request_frames();
  // Parts of the map are told to whole entries: what was not changed stays as it is.
  if (text == place_text(here)) return;
  try {
    document_->history.become(state_at(text, here, palette_context(), document_->limits));
    changed_ = true;
  } catch (const Error& error) {
    place_problem_ = one_line(error.what());
  }
}

}  // namespace attnscope
