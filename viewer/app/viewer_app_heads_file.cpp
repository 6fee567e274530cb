#include "viewer/app/viewer_app.h"

#include "core/base/error.h"
#include "viewer/session/head_list_file.h"
#include "viewer/session/session_paths.h"
#include "viewer/view/heads/head_selection.h"

// The selected heads as a file.

namespace attnscope {

void ViewerApp::save_heads(const std::filesystem::path& file) {
  if (!document_) throw usage_error("no capture is open");
  const ViewState& state = document_->history.now();
  const std::string& list = state.atlas.selected;
  if (list.empty()) throw usage_error("no head is selected");
  const auto heads = listed_heads(list, document_->own(), state.head);
  write_head_list(heads, file, settings_.force, guarded());
  tell(std::to_string(heads.size()) + (heads.size() == 1 ? " head" : " heads") +
       " saved: " + told_path(file));
}

}  // namespace attnscope
