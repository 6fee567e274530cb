#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/problem/token_grid.h"
#include "viewer/commands/key_chord.h"
#include "viewer/script/compare_words.h"
#include "viewer/script/pane_words.h"
#include "viewer/script/script_names.h"
#include "viewer/view/heads/head_picker.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/view_state.h"

namespace attnscope {

/// The states that a script can wait for: the first picture of the view, whatever its level; the
/// row of the query; exact tiles all over the view and the exact row; a sketch of every head of the
/// atlas; nothing left to do; the mask's numbers from all rows.
enum class WaitFor : uint8_t { picture, query, exact, atlas, idle, mask };
std::string_view wait_name(WaitFor what);

enum class CompareOp : uint8_t { equal, unequal, less, less_equal, greater, greater_equal };
std::string_view compare_op_text(CompareOp op);

/// The commands of a script that are more than an action.
namespace word {
struct Open {
  std::string path;
};
struct Size {
  int width = 0, height = 0;
};
/// `step 10`, `branch cond` …
struct Select {
  HeadAxis axis = HeadAxis::step;
  std::string value;
};
/// `head L H`.
struct SelectLayerHead {
  std::string layer, head;
};
struct QueryAt {
  LatentCoord place;
};
/// "5,0:30,10:12".
struct QueryBox {
  std::string box;
};
struct QueryText {
  int64_t number = 0;
};
/// Its place in the sequence.
struct QueryToken {
  int64_t token = 0;
};
/// Empty: the video.
struct ShowSegment {
  std::string name;
};
/// `atlas on`, `atlas entropy`, `atlas sort text_mass` …: the look with a part of it changed.
struct ShowAtlas {
  std::string part;   ///< "on", "off", "cells", "sort", "filter", "exact", "sampled"
  std::string value;  ///< a number's name, or a filter; empty: thumbnails, by layer, no filter
};
/// `volume max`, `volume orbit 30 20` …
struct ShowVolume {
  VolumeChange change;
};
/// `timeline entropy`, `timeline over layers` …
struct ShowTimeline {
  TimelineChange change;
};
/// `pin 3`
struct GoToPin {
  int64_t number = 1;
};
struct Play {
  bool on = true;
};
struct Act {
  Action action;
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
  ScriptName name = ScriptName::frames;
};
struct Expect {
  ScriptName name = ScriptName::frames;
  CompareOp op = CompareOp::equal;
  double number = 0;  ///< where the name is a number
  std::string text;   ///< as it was written
};
struct Shot {
  std::string path;
};
struct SaveSession {
  std::string path;
};
/// Of the mask over the matrix, once it is there.
struct SaveMask {
  std::string path;
};
struct Quit {};
}  // namespace word
using ScriptWord =
    std::variant<word::Open, word::Size, word::Select, word::SelectLayerHead, word::QueryAt,
                 word::QueryBox, word::QueryText, word::QueryToken, word::ShowSegment,
                 word::ShowAtlas, word::ShowWords, word::ChooseWords, word::Film, word::ShowMask,
                 word::ShowVolume, word::ShowTimeline, word::ShowTrack, word::GoToPin, word::Play,
                 word::ShowOrder, word::Act, word::Click, word::Drag, word::Wheel, word::PressKey,
                 word::Type, word::SelectOther, word::OpenOther, word::ShowOther, word::Wait,
                 word::WaitCalls, word::Probe, word::Print, word::Expect, word::Shot,
                 word::SaveSession, word::SaveMask, word::Quit>;

/// Seconds that `wait` waits when none are given.
inline constexpr double kWaitSeconds = 60;

/// The command that the words of one line make; the first is its name. Throws Error(usage) without
/// a place.
ScriptWord parse_script_words(std::span<const std::string> words);

/// `query T Y X`, `pane NAME` … with a line of help each: for --help, docs and the palette.
struct ScriptWordHelp {
  std::string_view usage, help;
};
const std::vector<ScriptWordHelp>& script_word_help();

}  // namespace attnscope
