#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "viewer/session/stored_session.h"

namespace attnscope {

/// True of a text that may be a session of format 1: a JSON object.
bool is_session_1(std::string_view text);
/// Reads a session of format 1. Throws Error(file) "FILE: KEY: …" for a key that is not known,
/// missing, or has a value that cannot be meant.
StoredSession parse_session_1(std::string_view text, const std::string& file,
                              const std::filesystem::path& folder);

}  // namespace attnscope
