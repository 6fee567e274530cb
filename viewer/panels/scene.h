#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/pictures/colour_scale.h"
#include "viewer/commands/commands.h"
#include "viewer/commands/key_chord.h"
#include "viewer/panels/fonts.h"
#include "viewer/panels/label_registry.h"
#include "viewer/panels/theme.h"
#include "viewer/view/heads/head_atlas.h"
#include "viewer/view/heads/head_picker.h"
#include "viewer/view/heads/timeline.h"
#include "viewer/view/magnified.h"
#include "viewer/view/maps/tile_source.h"
#include "viewer/view/placed_map.h"
#include "viewer/view/query_words.h"
#include "viewer/view/row/words_view.h"
#include "viewer/view/value_range.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/view_state.h"

namespace attnscope {

/// An entry of the map, by its tokens' places in the sequences, in whatever order the matrix shows
/// them.
struct MapPoint {
  int64_t query = 0;
  int64_t key = 0;
  friend bool operator==(const MapPoint&, const MapPoint&) = default;
};

/// The numbers of the entry under the mouse, for the status line and the crosshair.
struct PointReadout {
  MapPoint point;
  std::optional<ProbedEntry> entry;  ///< none: not computed yet
  std::optional<ProbedEntry> other;  ///< of side B, where that is read as well
  std::optional<int64_t> rank;       ///< of the key among the row's keys, from 1
  bool on_other = false;             ///< `entry` is side B's, which alone is pointed at
};

/// The head that A is compared with, and how both are seen.
struct SideB {
  const HeadPicker& picker;             ///< of heads that can be it
  std::optional<HeadId> head = {};      ///< nothing: there is none
  const MapSource* call = nullptr;      ///< of the head
  std::optional<ViewState> state = {};  ///< as it is seen right of a split line
  std::optional<ColourScale> scale = {};
  bool shown = false;      ///< in place of A
  bool of_second = false;  ///< of another capture than A
  std::shared_ptr<const RowDivergence> divergence = {};
  std::string divergence_problem = {};
};

/// Everything that panels read. Borrowed for one frame; nothing here is changed by drawing.
struct Scene {
  const ViewState& state;
  const MapSource& call;
  const HeadPicker& picker;
  TokenNames queries, keys;
  const TileSource& tiles;
  MapGeometry geometry;
  PlacedMap placed;                 ///< which tokens stand at the matrix's places
  ColourScale scale;                ///< of the matrix
  double factor = 1;                ///< weights are multiplied by it: the number of keys, or 1
  const ValueHistogram& histogram;  ///< of what is seen of the map
  ValueHistogram::Beyond beyond;    ///< what of that lies beyond the scale's ends
  std::optional<PointReadout> readout;
  /// The line that the query volume shows; it may lag behind the mouse by a moment.
  std::shared_ptr<const MapLine> line;
  bool line_pending = false;
  std::optional<Magnified> magnified = {};  ///< around the readout's point; nothing: not shown
  const AtlasCells* atlas = nullptr;        ///< null: not shown
  const WordsView* words = nullptr;         ///< null: neither shown nor any chosen
  bool words_pending = false;               ///< some of their numbers are still to come
  HeadId locked = {};                       ///< that is seen when the mouse points at no other
  /// The latent frame that each picture of the video belongs to.
  std::span<const int64_t> pictures = {};
  bool plays_film = false;  ///< of the query
  TileSourceStatus source;
  double texture_mib = 0;
  const ViewState& chosen;  ///< the state, but while B is seen in place of A
  SideB other;
  std::shared_ptr<const HeadMask> mask = {};      ///< null: none, or not there yet
  std::shared_ptr<const HeadTracks> tracks = {};  ///< null: not asked for, or not there yet
  std::string tracks_problem = {};
  // Why the wanted line, some tile, the words' line or masses will not come; empty: they may.
  std::string line_problem = {}, tiles_problem = {}, words_problem = {};

  /// Where one is, as the toolbar's field has it, and why what was typed there last is no place;
  /// empty: it was one.
  std::string place = {}, place_problem = {};
  int64_t memory_bytes = 0;  ///< that the program takes; 0: not known
  int64_t memory_limit = 0;  ///< of what is computed and kept; 0: not known

  std::string notice;                  ///< what was just done, for the status line; empty: nothing
  bool is_sample = false;              ///< it goes with the window
  std::string warning;                 ///< about the capture; empty: none, or dismissed
  double now = 0;                      ///< in seconds, of a clock that goes on
  const Timeline* timeline = nullptr;  ///< null: not shown
  const HeadCurve* curve = nullptr;    ///< null: no number is chosen
  bool playing = false;                ///< goes through the steps
  bool follows = false;                ///< calls may be added to the capture
};

/// The wishes of a panel: actions on the state, and requests beyond it.
struct PanelRequests {
  std::vector<Action> actions;
  bool instead = false;              ///< of the step that was made last
  std::optional<MapPoint> hovered;   ///< the entry under the mouse
  bool hovered_other = false;        ///< it was pointed at on side B
  std::optional<int64_t> follow;     ///< the query (reverse: key) to show while none is picked
  std::optional<HeadId> preview;     ///< a head to be seen as long as the mouse is on it
  std::optional<std::string> open;   ///< a capture
  std::vector<FrameRequest> frames;  ///< pictures of the video that the film would like to have
  bool draw_again = false;           ///< something is left to be drawn
  bool play_film = false;            ///< begin or end to play the film
  std::string save_film;             ///< an ending of FilmExport's names; empty: none
  bool show_browser = false;
  std::string save_sample;           ///< where the sample is written to; empty: nowhere
  bool choose_sample_place = false;  ///< ask for that
  bool open_sample = false;          ///< the synthetic capture that the program makes
  bool show_help = false;
  bool dismiss_warning = false;
  std::optional<CommandId> command;  ///< as its key would
  std::optional<std::string> place;  ///< was typed, to go there
  std::optional<bool> show_other;    ///< side B in place of A, until it is told otherwise
  bool save_mask = false;            ///< write the mask's blocks
  std::optional<bool> play;          ///< go through the steps, or stop that
  std::optional<double> again_in;    ///< seconds after which a frame is due though nothing happens

  void draw_again_in(double seconds) {
    again_in = again_in ? std::min(*again_in, seconds) : seconds;
  }
  template <class T>
  void act(T action) {
    actions.emplace_back(std::move(action));
  }
};

/// The theme, fonts and scale that drawing needs beside the scene. Borrowed for one frame.
struct Ui {
  const Theme& theme;
  const Fonts& fonts;
  LabelRegistry& labels;
  float scale = 1;  ///< the display's
  /// The keys that were pressed since the last frame while a list was open; for that list.
  std::span<const KeyChord> list_keys = {};

  float px(float length) const { return length * scale; }
};

/// "weight", "logit", "lift (weight × keys)".
std::string unit_name(ViewProduct product, ScoreFunction score);

}  // namespace attnscope
