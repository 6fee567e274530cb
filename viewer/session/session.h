#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "viewer/session/stored_session.h"
#include "viewer/view/heads/head_picker.h"
#include "viewer/view/view_state.h"

namespace attnscope {

/// A session to be written: with all that is looked at.
struct Session : SessionInput {
  ViewState view;
};

/// The heads that sessions are written and brought back with. Borrows all.
struct SessionHeads {
  const HeadPicker& picker;
  const HeadPicker& others;  ///< heads that can be side B
  const ViewLimits& limits;
};

/// A script: the format, `open` with the facts that were told, `size`, and a line for each setting
/// that is not as it is at first. Paths are relative to `folder` (absolute) where they are below
/// it, else absolute. Throws Error(file) for a name with a line break.
std::string session_text(const Session& session, const SessionHeads& heads,
                         const std::filesystem::path& folder);
/// Of this format, and of format 1 (JSON). Throws Error(file) "FILE:LINE: …" for a line that is no
/// setting or cannot be meant. Paths come back absolute, or below `folder`.
StoredSession parse_session(std::string_view text, const std::string& file,
                            const std::filesystem::path& folder);

/// True where the first line of a file that is no comment claims to be a session's. False where it
/// cannot be read.
bool is_session_file(const std::filesystem::path& file);
StoredSession read_session(const std::filesystem::path& file);
/// Through FILE.part; replaces FILE only with `force`. Throws Error(file).
void write_session(const Session& session, const SessionHeads& heads,
                   const std::filesystem::path& file, bool force);

/// The state that a session asks for in the capture that it names. Throws Error(usage)
/// "FILE:LINE: …" where a capture does not have its head, tokens or values.
ViewState restored_view(const StoredSession& session, const SessionHeads& heads);

}  // namespace attnscope
