#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "viewer/session/session.h"
#include "viewer/view/heads/head_picker.h"
#include "viewer/view/maps/map_tile.h"
#include "viewer/view/query_words.h"

namespace attnscope {

/// The command that shows what is seen now: `attnscope view CAPTURE --steps … --query …`, with the
/// facts that were given on the command line. One line for a shell.
std::string view_command(const Session& session, const HeadPicker& picker, const HeadId& head,
                         const TokenNames& tokens);

/// The command that exports the part of the map that is seen: `attnscope export CAPTURE … --rows
/// A:B --cols C:D -o …`, of the heads that are selected in the atlas where it is shown; of a
/// capture on another machine the line that runs it there.
std::string export_command(const Session& session, const HeadPicker& picker, const HeadId& head);

/// The options by which commands choose the heads of a list (as head_selection.h has it) that is
/// looked at beside `head`: "--steps 10 --pick 3.1,12.7 --branch cond". What the capture has one of
/// alone is left out.
std::string heads_options(const std::string& list, const HeadPicker& picker, const HeadId& head);

/// The command that measures the head, or the selected ones: `attnscope stats CAPTURE …`.
std::string stats_command(const Session& session, const HeadPicker& picker, const HeadId& head);

/// An entry as one line: the head, the pair of tokens, row and column, its numbers as they are.
std::string entry_text(const ProbedEntry& entry, const std::string& head, const std::string& pair);
/// The entry that such a line tells of.
struct ToldEntry {
  std::string head;
  int64_t query = 0, key = 0;  ///< tokens
};
/// Reads what entry_text() writes; nothing where the text is none of its lines.
std::optional<ToldEntry> read_entry_text(const std::string& text);

/// The facts as options of a command, each with a space in front.
std::string fact_words(const FactOverrides& facts);

/// The place that a command of the window's kind tells.
struct ToldPlace {
  std::string input, second;       ///< what it opens, as it is written; empty: it does not say
  std::vector<std::string> lines;  ///< of a script, that lead there
};
/// Reads what view_command(), export_command() and stats_command() write, or a hand wrote: of an
/// `attnscope view …` the heads, the query, the order and the part of the map, of which `whole` is
/// all; how it is opened and computed is passed over. Nothing where the text is no such command.
/// Throws Error(usage) for options that lead elsewhere, and quotes that do not end.
std::optional<ToldPlace> read_view_command(const std::string& text, const MapRect& whole);

/// A word of a shell: quoted where it has to be.
std::string shell_quoted(const std::string& word);

}  // namespace attnscope
