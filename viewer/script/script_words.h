#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "viewer/commands/key_chord.h"
#include "viewer/settings/settings.h"

namespace attnscope {

/// The states that a script can wait for: the first picture of the view, whatever its level; the
/// row of the query; exact tiles all over the view and the exact row; a sketch of every head of the
/// atlas; nothing left to do; the mask's numbers from all rows.
enum class WaitFor : uint8_t { picture, query, exact, atlas, idle, mask };
std::string_view wait_name(WaitFor what);

enum class CompareOp : uint8_t { equal, unequal, less, less_equal, greater, greater_equal };
std::string_view compare_op_text(CompareOp op);

struct ScriptValue;

/// The commands of a script.
namespace word {
struct Open {
  std::string path;
};
struct Size {
  int width = 0, height = 0;
};
/// A setting, or what moves among settings: `fit`, `pin 3`, `unpin 3`.
struct Set {
  SettingChange change;
  const Setting* setting = nullptr;  ///< null: it moves among them
};
struct Play {
  bool on = true;
};
/// `film play`, `film stop`.
struct PlayFilm {
  bool on = true;
};
/// `film x.gif`.
struct SaveFilm {
  std::string path;
};
/// `b capture PATH`.
struct OpenOther {
  std::string path;
};
/// `b show on`: B in place of A, as while its key is held.
struct ShowOther {
  bool on = false;
};
/// From one place of what a label covers to another, by shares of its width and height.
struct Drag {
  std::string label;
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  bool shift = false, ctrl = false;
};
/// The wheel over the middle of what a label covers, so many notches: up where they are positive.
struct Wheel {
  std::string label;
  int64_t notches = 0;
};
struct Click {
  std::string label;
  bool press = true;  ///< false: the mouse moves there and stays
};
struct PressKey {
  KeyChord chord;
};
struct Type {
  std::string text;
};
struct Wait {
  WaitFor what = WaitFor::picture;
  double seconds = 0;
};
/// Until the capture has so many calls, or pictures of its video.
struct WaitCalls {
  int64_t count = 1;
  bool pictures = false;
  double seconds = 0;
};
struct Probe {
  int64_t query = 0, key = 0;
};
struct Print {
  const ScriptValue* value = nullptr;
};
struct Expect {
  const ScriptValue* value = nullptr;
  CompareOp op = CompareOp::equal;
  double number = 0;  ///< where the value is one
  std::string text;   ///< as it was written
};
struct Shot {
  std::string path;
};
struct SaveSession {
  std::string path;
};
/// Of the map that is seen, once it is exact.
struct SaveFigure {
  std::string path;
};
/// Of the mask over the matrix, once it is there.
struct SaveMask {
  std::string path;
};
/// Of the selected heads.
struct SaveHeads {
  std::string path;
};
/// `walk smaller`, `walk larger`: along the values of the row that is shown.
struct WalkEntry {
  bool larger = false;
};
struct Quit {};
}  // namespace word
using ScriptWord =
    std::variant<word::Open, word::Size, word::Set, word::Play, word::PlayFilm, word::SaveFilm,
                 word::SaveFigure, word::OpenOther, word::ShowOther, word::Click, word::Drag,
                 word::Wheel, word::PressKey, word::Type, word::Wait, word::WaitCalls, word::Probe,
                 word::Print, word::Expect, word::Shot, word::SaveSession, word::SaveMask,
                 word::SaveHeads, word::WalkEntry, word::Quit>;

/// Seconds that `wait` waits when none are given.
inline constexpr double kWaitSeconds = 60;

/// The command that the words of one line make; the first is its name. Throws Error(usage) without
/// a place.
ScriptWord parse_script_words(std::span<const std::string> words);

/// `query T Y X`, `pane NAME` … with a line of help each, settings too: for docs and the palette.
struct ScriptWordHelp {
  std::string_view usage, help;
};
const std::vector<ScriptWordHelp>& script_word_help();

}  // namespace attnscope
