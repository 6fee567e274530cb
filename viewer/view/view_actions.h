#pragma once

#include <optional>
#include <string>
#include <variant>

#include "viewer/view/view_state.h"

namespace attnscope {

/// The actions on the state; each is one step of undo (those that follow each other at once and
/// only move or zoom make one step together: see ViewHistory). apply_action() does them.
namespace action {
struct SelectHead {
  HeadId head;
};
struct SetRect {
  MapRect rect;
};
/// Sides of the map: an action without one is about both.
enum class MapSide : uint8_t { rows, keys };
/// Keeps the entry under the cursor in its place, as far as the map goes; a factor above 1 shows
/// less of the map, larger.
struct ZoomAt {
  double query, key, factor;
  std::optional<MapSide> side = {};
};
/// Moves the view by so many entries: towards later queries and keys where they are positive.
struct Pan {
  double queries, keys;
};
struct Fit {};
struct PickQuery {
  ChosenQuery query;
};
struct DropQuery {};
struct SetReverse {
  bool on;
};
/// Empty: the video.
struct SetSegment {
  std::string name;
};
struct SetProduct {
  ViewProduct product;
};
struct SetPool {
  Pool pool;
};
struct SetScale {
  ScaleKind scale;
};
struct SetColormap {
  std::string name;
};
struct SetRange {
  ColourRange range;
};
/// A part of the state that is on or off: equal_axes, show_histogram and the like.
struct Switch {
  bool ViewState::*part;
  bool on;
};
/// Of both sides, those that have a grid take the order.
struct SetOrder {
  TokenOrder order;
  std::optional<MapSide> side = {};
};
/// The order that FlipOrder changes to.
struct SetOtherOrder {
  TokenOrder order;
  std::optional<MapSide> side = {};
};
/// Changes the order with the one that was seen before it.
struct FlipOrder {};
struct SetTheme {
  ViewTheme theme;
};
struct Maximise {
  std::optional<ViewPane> pane;
};
struct SetAtlas {
  AtlasLook look;
};
struct SetVolume {
  VolumeLook look;
  bool dragged = false;  ///< by the mouse, which goes on: one gesture
};
struct SetTimeline {
  TimelineLook look;
};
struct SetTracks {
  TracksLook look;
};
/// Keeps an entry under a number, or lets it go.
struct SetPin {
  int64_t number;
  std::optional<Pin> place;
};
/// Shows a pin in the middle of the view, as far as the map goes, and picks its token.
struct GoToPin {
  int64_t number;
  std::optional<Pin> stands_at = {};  ///< in the matrix' order; nothing: where it is stored
};
/// A head of another step, as SelectHead; those that follow each other are one gesture.
struct Scrub {
  HeadId head;
};
struct SetSplit {
  float share;
};
struct SetWords {
  WordsLook look;
};
struct SetFilm {
  FilmLook look;
};
/// The moment that is shown large; those that follow each other at once are one step of undo.
struct SetMoment {
  int64_t moment;
};
struct SetMask {
  MaskLook look;
  bool dragged = false;  ///< a number of its pattern, by a slider that goes on: one gesture
  /// False: a mask that the head cannot carry is kept for others.
  bool of_this_head = true;
};
/// Side B.
struct SetOther {
  HeadId head;
};
struct DropOther {};
struct SetDifference {
  Difference how;
};
/// Nothing: one map all over.
struct SetSplitLine {
  std::optional<float> share;
};
enum class Lock : uint8_t { zoom, range, cursor };
struct SetLock {
  Lock lock;
  bool on;
};
/// The part of the map that B shows while its zoom is its own.
struct SetOtherRect {
  MapRect rect;
};
struct ShowRanked {
  bool on;
};
}  // namespace action
using Action =
    std::variant<action::SelectHead, action::SetRect, action::ZoomAt, action::Pan, action::Fit,
                 action::PickQuery, action::DropQuery, action::SetReverse, action::SetSegment,
                 action::SetProduct, action::SetPool, action::SetScale, action::SetColormap,
                 action::SetRange, action::Switch, action::SetOrder, action::SetOtherOrder,
                 action::FlipOrder, action::SetTheme, action::Maximise, action::SetAtlas,
                 action::SetSplit, action::SetWords, action::SetFilm, action::SetMask,
                 action::SetMoment, action::SetVolume, action::SetTimeline, action::Scrub,
                 action::SetOther, action::DropOther, action::SetDifference, action::SetSplitLine,
                 action::SetLock, action::SetOtherRect, action::ShowRanked, action::SetTracks,
                 action::SetPin, action::GoToPin>;

/// The state after an action; `state.head` must be in the limits. Pure. What else changes with it:
/// - another head whose map has the same size keeps rectangle and query, another size refits and
///   drops query and pins, another size of the prompt its chosen words; tokens mean something else
///   after `reverse` where queries and keys are not the same sequence, so it drops the query there;
/// - an order of the tokens that the other head's cannot stand in becomes the stored one;
/// - a product takes its usual scale where logits come or go and the scale is log, sqrt or linear
///   (symlog suits all); the range of another product becomes automatic;
/// - a range that the new scale cannot show becomes automatic;
/// - side B stays while its map has A's size and the numbers that are shown, else it goes; logits
///   have no ratio, so that a log ratio of them becomes a difference; a split line shows both maps,
///   a difference one, so that each ends the other; the colours' range is the
///   difference's where one is shown, and of signed ones as far below 0 as above;
/// - a pane that is maximised is shown, and one that is hidden is not maximised; of the panes that
///   stand below the query in one place (pane_below()) one that is shown hides the others.
/// Throws Error(usage), one line without a place, for what cannot be meant: a head, token or colour
/// map that is not there, an empty rectangle or choice, a range, scale or number of the atlas that
/// cannot be shown, a filter that cannot be read, a factor or share that is no positive number.
ViewState apply_action(const ViewState& state, const Action& action, const ViewLimits& limits);

}  // namespace attnscope
