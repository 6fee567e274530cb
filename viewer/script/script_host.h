#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "viewer/script/measured.h"
#include "viewer/script/script.h"
#include "viewer/settings/settings.h"
#include "viewer/view/maps/head_tracks.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/view_state.h"

namespace attnscope {

/// The actions of a script on a window. Every member throws Error, without a place, where it cannot
/// act; the runner adds file and line. Called on the window's thread, between two frames.
class ScriptHost {
 public:
  virtual ~ScriptHost() = default;

  /// Opens a capture (or a session file) and shows it.
  virtual void open(const std::string& path) = 0;
  virtual void resize(int width, int height) = 0;
  /// The calls of the open capture; null before the first `open`.
  virtual const std::vector<MapSource>* calls() const = 0;
  virtual const ViewState& state() const = 0;
  virtual void act(const Action& action) = 0;

  /// The state, with what words of settings mean beside it.
  virtual SettingPlace place() const = 0;
  /// Opens a second capture or export, whose heads can be side B.
  virtual void open_other(const std::string& path) {
    throw usage_error("b capture " + one_line(path) + ": this window shows one capture");
  }
  /// B in place of A.
  virtual void show_other(bool on) { (void)on; }

  /// Clicks the middle of what was drawn with this label in the last frame; false where there was
  /// none. The click may take a few frames: input_done() says when it is over.
  virtual bool click(const std::string& label) = 0;
  /// Drags over it, as click().
  virtual bool drag(const word::Drag& drag) {
    (void)drag;
    return false;
  }
  /// Turns the wheel over it, as click().
  virtual bool wheel(const word::Wheel& wheel) {
    (void)wheel;
    return false;
  }
  /// Moves the mouse over it, as click(), without pressing: the mouse stays there.
  virtual bool hover(const std::string& label) = 0;
  /// Labels that were drawn in the last frame.
  virtual std::vector<std::string> labels() const = 0;
  virtual void press(const KeyChord& chord) = 0;
  /// Types into the field that takes text; false where there is none.
  virtual bool type(const std::string&) { return false; }
  virtual bool input_done() const = 0;

  /// Steps through the recorded steps, or stops that.
  virtual void play(bool on) = 0;

  /// True where calls, or the capture itself, may still come by themselves.
  virtual bool follows() const { return false; }
  virtual bool reached(WaitFor what) const = 0;
  /// Why that will not be reached, one line; empty while it may be.
  virtual std::string problem_before(WaitFor what) const = 0;
  /// The likely reason why a wait took too long, one line; may be empty.
  virtual std::string waiting_for() const = 0;
  virtual Measured measured() const = 0;

  /// Nothing while it is not there; to be asked again then, in a later frame.
  virtual std::optional<ProbedEntry> probe(int64_t query, int64_t key) = 0;
  /// The entry of side B at the same place; nothing while it is not there.
  virtual std::optional<ProbedEntry> probe_other(int64_t query, int64_t key) {
    (void)query, (void)key;
    return std::nullopt;
  }
  /// True where the tracks of the head that is shown are asked for; tracks() gives them as far as
  /// they are there.
  virtual bool wants_tracks() const { return false; }
  virtual std::shared_ptr<const HeadTracks> tracks() const { return nullptr; }
  /// A line for standard output.
  virtual void print(const std::string& line) = 0;
  /// Writes the window as a picture; the frame that is written may be the next one: shot_done().
  virtual void shot(const std::string& path) = 0;
  virtual bool shot_done() const = 0;
  virtual void save_session(const std::string& path) = 0;

  /// Writes the blocks of the mask over the matrix, of which there is one.
  virtual void save_mask(const std::string& path) {
    throw usage_error("save-mask " + one_line(path) + ": this window has no masks");
  }

  /// Writes the map that is seen as a page; it is exact.
  virtual void save_figure(const std::string& path) {
    throw usage_error("figure " + one_line(path) + ": this window writes no pages");
  }
  /// Writes the selected heads, of which there are some.
  virtual void save_heads(const std::string& path) {
    throw usage_error("save-heads " + one_line(path) + ": this window has no files");
  }
  /// Reads the next smaller or larger entry of the row that is shown, which is there.
  virtual void walk_entry(bool larger) { (void)larger; }

  /// Begins or ends to play the film of the query pane.
  virtual void play_film(bool on) = 0;
  /// Begins to write it; it is there when film_saved() says so, which may throw too.
  virtual void save_film(const std::string& path) = 0;
  virtual bool film_saved() = 0;
};

}  // namespace attnscope
