#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "viewer/app/counted_view.h"
#include "viewer/app/document.h"
#include "viewer/panels/scene.h"
#include "viewer/view/heads/timeline.h"
#include "viewer/view/row/words_view.h"
#include "viewer/view/wanted_tiles.h"

namespace attnscope {

/// The window's requests to an open document, frame by frame, and their results: tiles, the line
/// and the entry under the mouse, the histogram of what is seen. One for each document. Only on the
/// window's thread.
class DocumentFrame {
 public:
  /// Borrows the document. `wake` is called from another thread when a histogram is counted.
  DocumentFrame(Document& document, std::function<void()> wake);

  /// Asks for what is seen in a pane of this size and for the heads of the atlas, those that are
  /// seen before others, where that has changed. `now` is in milliseconds, of any clock that goes
  /// on.
  void ask(PaneSize pane, std::span<const HeadId> seen_heads, double now);
  /// Takes what has come since. While the map is moved, colours do not change.
  void take(PaneSize pane, bool moved);

  /// Set what the mouse points at, and the token of the line that it shows; true where that is new.
  bool hover(const std::optional<MapPoint>& point, bool on_other = false);
  bool follow(int64_t token);
  /// Reads the next smaller or larger entry of the line that is shown, the largest first, as if the
  /// mouse were on it, until the mouse points elsewhere. Gives it. Throws Error(usage) where there
  /// is none.
  MapPoint walk(bool larger);
  bool is_on_map() const { return mouse_.has_value(); }
  /// The token that the mouse points at in this moment, for the words' list; the same.
  bool point(const std::optional<int64_t>& token);
  /// Pictures of the video that are asked for from now on; the same.
  bool want_pictures(std::vector<FrameRequest> pictures);
  /// The token whose line is shown while none is picked.
  const std::optional<int64_t>& followed() const { return followed_; }

  /// The tiles that are wanted, coarser first, then nearest to the view's middle.
  const std::vector<TileId>& tiles() const { return tiles_; }
  /// Document::shown() when it was asked.
  const ViewState& shown() const { return shown_; }
  /// Nothing while the atlas is not shown.
  const std::optional<AtlasCells>& atlas() const { return atlas_; }
  /// Of the head that is shown.
  const Timeline& timeline() const { return timeline_; }
  /// Nothing while the time line has none.
  const std::optional<HeadCurve>& curve() const { return curve_; }
  /// Nothing while neither the words are shown nor some of them chosen.
  const std::optional<WordsView>& words() const { return words_; }
  /// True unless the words' list waits for its row; has_masses(): for the means over the video.
  bool has_words_line() const { return !words_line_wanted_ || words_line_is_wanted_; }
  bool has_masses() const { return !masses_wanted_ || words_key_.masses != nullptr; }
  const std::optional<PointReadout>& readout() const { return readout_; }
  /// The entries around the one that is read; nothing without one, and while they are not shown.
  std::optional<Magnified> magnified() const;
  /// True unless some of them are still to come exactly.
  bool is_magnified_exact() const { return !magnified_at_ || magnified()->exact; }
  /// B as it is seen right of a split line; nothing without one.
  const std::optional<ViewState>& other_shown() const { return other_shown_; }
  const std::shared_ptr<const MapLine>& line() const { return line_; }
  const ValueHistogram& histogram() const { return seen_.histogram(); }
  bool histogram_stale() const { return seen_.stale() || (has_own_range() && seen_other_.stale()); }
  /// Of B right of a split line: A's, or its own where its range is not locked.
  std::optional<ColourScale> other_scale() const;
  /// The mask over the matrix as far as it is known; null: none is wanted, or not there yet.
  const std::shared_ptr<const HeadMask>& mask() const { return mask_; }
  /// True unless a mask is wanted whose numbers of all rows are still to come.
  bool has_mask() const;
  /// True where the tracks of the head that is shown are asked for; tracks(): these, as far as they
  /// are there.
  bool wants_tracks() const { return tracks_wanted_.has_value(); }
  std::shared_ptr<const HeadTracks> tracks() const;
  /// True unless tracks are asked for that are not there exactly yet.
  bool are_tracks_exact() const;
  /// How far rows are from side B's, where they are listed; null: not there yet, or not listed.
  std::shared_ptr<const RowDivergence> divergence() const;
  /// Why what is wanted will not come (exactly), as things stand; one line. Empty: it is there, may
  /// still come, or is not wanted. Of lines and tiles: of the first that has a problem.
  std::string line_problem() const { return any_problem({line_wanted_, other_line_wanted_}); }
  std::string words_problem() const { return any_problem({words_line_wanted_, masses_wanted_}); }
  std::string tracks_problem() const { return any_problem({tracks_wanted_}); }
  std::string divergence_problem() const { return any_problem({compared()}); }
  std::string tiles_problem() const;
  /// Milliseconds from asking for the line that came last until it was there.
  const std::optional<double>& line_ms() const { return line_ms_; }

  /// True where the line that is shown is the wanted one.
  bool has_line() const {
    return line_ && line_wanted_ && line_->request == *line_wanted_ &&
           line_against_ == shown_.against();
  }
  bool line_pending() const { return line_wanted_ && !has_line(); }
  /// True unless the value of the entry under the mouse is still to come.
  bool has_entry() const { return !readout_ || readout_->entry; }
  /// True where the line, the entry, the mask or numbers of words have come and are not taken yet.
  bool has_news() const;

  /// An entry of the head that is shown: asks for it, and tells it once it is there. Throws
  /// Error(file) where it cannot be had.
  std::optional<ProbedEntry> probe(int64_t query, int64_t key);
  /// As probe(), of side B, which there must be.
  std::optional<ProbedEntry> probe_other(int64_t query, int64_t key);

 private:
  MapGeometry geometry() const;
  /// The head that is shown of A, also while B is seen in its place.
  HeadId own_head() const {
    return document_.shows_other ? document_.history.now().head : shown_.head;
  }
  std::optional<ProbeRequest> hovered_probe(bool other = false) const;
  std::optional<ProbedEntry> probe_of(const HeadId& head, int64_t query, int64_t key);
  std::shared_ptr<const MapLine> found_line() const;
  std::shared_ptr<const HeadSketch> found_sketch(const HeadId& id) const;
  std::optional<ProbedEntry> found_entry(const ProbeRequest& request) const;
  std::optional<HeadsCompared> compared() const;
  std::string any_problem(std::initializer_list<std::optional<Ask>> asks) const;
  void ask_for_magnified();
  const ViewState& magnified_state() const;
  void ask_for_tiles(PaneSize pane, Wishes& exact);
  std::vector<HeadId> wanted_atlas(std::span<const HeadId> seen);
  void ask_for_sketches(const std::vector<HeadId>& atlas);
  void choose_line();
  MapPoint point_on_line(int64_t place) const;
  void choose_entry();
  void take_line();
  std::optional<MaskRequest> wanted_mask() const;
  std::shared_ptr<const HeadMask> found_mask() const;
  void take_words();
  void take_entry();
  void take_histogram(PaneSize pane, bool moved);
  CountedView::Key counted_key(const ViewState& state, PaneSize pane) const;
  bool has_own_range() const { return other_shown_ && !shown_.other->lock_range; }
  void wish();

  Document& document_;
  const std::function<void()> wake_;
  ViewState shown_;
  std::optional<ViewState> other_shown_;
  std::optional<std::pair<int64_t, int64_t>> magnified_at_;  ///< row and column
  std::optional<LineRequest> other_line_wanted_;             ///< of B, where a difference is shown
  std::shared_ptr<const MapLine> line_of_a_, line_of_b_;     ///< that the difference was made of
  std::optional<Against> line_against_;                      ///< of line_
  bool mouse_on_other_ = false, hovered_on_other_ = false;
  std::optional<AtlasCells> atlas_;
  Timeline timeline_;
  std::pair<HeadId, size_t> timeline_of_;  ///< the head, and how many calls there were
  std::optional<HeadCurve> curve_;
  Wishes wishes_;  ///< but for entries
  Wishes told_;    ///< to the source
  std::vector<TileId> tiles_;
  std::optional<LineRequest> words_line_wanted_;
  std::optional<MassRequest> masses_wanted_;
  std::optional<MaskRequest> mask_wanted_;
  std::optional<TracksRequest> tracks_wanted_;
  std::optional<int64_t> followed_;
  std::optional<LineRequest> line_wanted_;
  std::shared_ptr<const MapLine> line_;
  double asked_at_ = 0, now_ = 0;  ///< for line_wanted_; in this frame
  std::optional<double> line_ms_;
  std::optional<MapPoint> mouse_;    ///< that the mouse points at
  std::optional<int64_t> walked_;    ///< the line's entry that is read instead
  std::optional<MapPoint> hovered_;  ///< that is read
  std::optional<PointReadout> readout_;
  std::optional<ProbeRequest> readout_of_, script_probe_;
  std::optional<int64_t> pointed_;
  std::vector<FrameRequest> pictures_;
  std::shared_ptr<const HeadMask> mask_;
  /// The inputs that the words' list was made of.
  struct WordsKey {
    HeadId head;
    bool reverse = false;
    WordsLook look;
    std::shared_ptr<const MapLine> line;
    std::shared_ptr<const KeyMasses> masses;
    friend bool operator==(const WordsKey&, const WordsKey&) = default;
  };
  std::optional<WordsView> words_;
  WordsKey words_key_;
  bool words_line_is_wanted_ = false;
  CountedView seen_, seen_other_;  ///< by the map, and by B right of a split line
};

}  // namespace attnscope
