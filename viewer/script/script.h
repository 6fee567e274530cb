#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/script/script_words.h"

namespace attnscope {

struct ScriptLine {
  int64_t line = 0;  ///< counted from 1
  std::string text;  ///< as written, without comment
  ScriptWord word;
};
struct Script {
  std::string file;  ///< how messages name it
  std::vector<ScriptLine> lines;
};

/// One command a line; `#` at the beginning of a word starts a comment; words with spaces or #
/// stand in double quotes, within which \" and \\ are read. Throws Error(usage) "FILE:LINE: …" for
/// a word that does not exist, a wrong number of words, and what is no number, name or operator.
Script parse_script(std::string_view text, const std::string& file);
/// Reads a file of at most 1 MiB. Throws Error(file) where it cannot be read.
Script read_script(const std::filesystem::path& file);
/// One line as the command palette takes it; the message has no place.
ScriptWord parse_script_line(std::string_view line);

}  // namespace attnscope
