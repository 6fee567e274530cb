#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "io/capture/capture.h"
#include "viewer/view/heads/head_picker.h"
#include "viewer/view/view_state.h"

namespace attnscope {

/// The contents of a session file: the input that was open, and all that was looked at. The head is
/// named by recorded values, so that it is found again when the capture has grown.
struct Session {
  std::filesystem::path capture;  ///< empty: bare tensors
  BareTensors tensors;
  FactOverrides facts;
  int width = 1280, height = 800;  ///< of the window, in its own units
  HeadValues head;
  ViewState view;  ///< but for its head, and that of side B
  /// Of side B, where view.other is there; a second capture that is open has its path.
  HeadValues other_head;
  std::filesystem::path other_capture;
};

/// `{"format": "attnscope-session/1", …}` with paths relative to `folder` (absolute) where they are
/// below it, else absolute.
std::string session_text(const Session& session, const std::filesystem::path& folder);
/// Throws Error(file) "FILE: KEY: …" for a key that is not known, missing, or has a value that
/// cannot be meant. Paths come back absolute, or below `folder`.
Session parse_session(std::string_view text, const std::string& file,
                      const std::filesystem::path& folder);

/// True where a file claims to be a session: its first bytes are those of a JSON object with the
/// format. False where it cannot be read.
bool is_session_file(const std::filesystem::path& file);
Session read_session(const std::filesystem::path& file);
/// Through FILE.part; replaces FILE only with `force`. Throws Error(file).
void write_session(const Session& session, const std::filesystem::path& file, bool force);

/// The state that a session asks for in the capture that it names; side B's head is one of
/// `others`. Throws Error(usage) "session: …" where a capture does not have its head, tokens or
/// values.
ViewState restored_view(const Session& session, const HeadPicker& picker, const ViewLimits& limits,
                        const HeadPicker& others);
inline ViewState restored_view(const Session& session, const HeadPicker& picker,
                               const ViewLimits& limits) {
  return restored_view(session, picker, limits, picker);
}

}  // namespace attnscope
