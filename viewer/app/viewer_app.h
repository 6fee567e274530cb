#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "viewer/app/app_settings.h"
#include "viewer/app/dialogs.h"
#include "viewer/app/document_frame.h"
#include "viewer/app/film_saving.h"
#include "viewer/app/following.h"
#include "viewer/app/frame_counters.h"
#include "viewer/app/frame_pacer.h"
#include "viewer/app/panel_set.h"
#include "viewer/app/sample_capture.h"
#include "viewer/app/start_screen.h"
#include "viewer/commands/commands.h"
#include "viewer/gl/framebuffer.h"
#include "viewer/screen/scripted_mouse.h"
#include "viewer/screen/window.h"
#include "viewer/script/script.h"
#include "viewer/view/query_walk.h"
#include "viewer/view/row/film_player.h"
#include "viewer/view/view_actions.h"

namespace attnscope {

struct ToldEntry;
struct ToldPlace;

/// The window's contents: a capture (or none), the panels, and one frame after the other. Only on
/// the window's thread.
class ViewerApp {
 public:
  using Settings = AppSettings;
  /// Borrows the window.
  ViewerApp(Window& window, Settings settings);
  ~ViewerApp();

  /// Throws where the capture cannot be opened; what was open stays then. `second`: a capture that
  /// is compared with it, of which a head is side B.
  void open(const CaptureOrigin& origin, const std::filesystem::path& second = {});
  /// Shows maps on another machine that were opened already, by this name.
  void open(const CaptureOrigin& origin, std::unique_ptr<RemoteTileSource> tiles);
  /// Opens a second capture beside the one that is open. Throws where that cannot be, or where it
  /// has no map of the size that is shown; what was open stays then.
  void open_other(const std::filesystem::path& path);
  /// Opens a capture as soon as there is something of it; `opened` is called then. Errors are shown
  /// in a dialog.
  void await(const CaptureOrigin& origin, std::function<void(Document&)> opened);
  /// True where calls may come by themselves: to what is open, or to what is waited for.
  bool follows() const {
    const bool remote = document_ && document_->remote != nullptr;
    return following_.is_on() || (remote && settings_.follow);
  }
  /// Opens a capture or a session. Throws where that cannot be; what was open stays then.
  void open(const std::filesystem::path& path);
  /// As open(), but a dialog shows what went wrong.
  void try_open(const std::filesystem::path& path);
  /// Writes the sample to a folder, and opens that. A dialog shows what went wrong.
  void save_sample(const std::filesystem::path& out);
  void act(const Action& action);
  /// For what stands in front: an open list, a dialog, the help, the panels. F12 takes a picture of
  /// whatever is seen.
  void press(const KeyChord& chord);
  /// A key was let go.
  void release(const KeyChord& chord);
  /// Side B is seen in place of A.
  void show_other(bool on) { hold(&Document::shows_other, on); }
  /// The magnifier is seen beside the mouse, as long as that is on.
  void magnify(bool on) { hold(&Document::magnifies, on); }
  /// Reads the next smaller or larger entry of the row that is shown; see DocumentFrame::walk().
  void walk_entry(bool larger);
  /// `replaces`: a file of this name, as `force` does. Throws Error(usage) where no capture is
  /// open, or the sample, which would go; Error(file).
  void save_session(const std::filesystem::path& file, bool replaces = false);
  /// Writes the blocks of the mask over the matrix as `attnscope mask` reads them. Throws
  /// Error(usage) where there is none, or where tokens stand in another order, Error(file).
  void save_mask(const std::filesystem::path& file);
  /// Writes the map as it is seen as a page: .pdf, .svg or .png. Throws Error(usage) where it is
  /// not seen, not exact yet, or beside side B's, and for other names; Error(file).
  void save_figure(const std::filesystem::path& file);
  /// Writes the selected heads as a list that `--from` reads. Throws Error(usage) where none is
  /// selected, Error(file).
  void save_heads(const std::filesystem::path& file);
  /// Begins or ends to play the film of the query pane, one frame large. Throws Error(usage) where
  /// there is none.
  void play_film(bool on);
  /// Begins to write the film that is seen; see FilmExport. It is there when film_saved() says so.
  /// Throws what FilmExport's constructor throws, Error(usage) where there is no film. `waits`:
  /// what goes wrong later is film_saved()'s, else a dialog's.
  void save_film(const std::filesystem::path& file, bool waits = true);
  /// True while no film is being written. Throws the error of the last one, once.
  bool film_saved() { return saving_.saved(); }
  /// Moments of the film that was drawn last, and the one that is seen large; nothing without one.
  std::optional<int64_t> film_moments() const;
  std::optional<int64_t> film_moment() const;

  /// Draws one frame and shows it.
  void draw_frame();
  /// Sleeps until a frame is due and draws it, or until `seconds` are over. Whether it drew one.
  bool step(double seconds);
  /// The frame that was drawn last, as a picture. Throws Error(file) as
  /// Document::require_unchanged() does.
  gl::ReadPixels picture();
  /// Keeps the map that was drawn last as the picture of what is open in the list of what was
  /// opened lately; nothing where that map is not seen, or not exact.
  void keep_picture();

  /// What the document shows; null while nothing is open.
  const DocumentFrame* frame() const { return frame_ ? &*frame_ : nullptr; }
  Document* document() { return document_.get(); }
  const Document* document() const { return document_.get(); }
  /// Document::guarded() of what is open.
  std::vector<std::filesystem::path> guarded() const {
    return document_ ? document_->guarded() : std::vector<std::filesystem::path>();
  }
  const FrameCounters& counters() const { return counters_; }
  /// True while a dialog tells what went wrong.
  bool failed() const { return dialogs_.notices().failure().has_value(); }
  /// The message of that dialog, one line; empty: there is none.
  std::string failure() const { return failed() ? dialogs_.notices().failure()->message : ""; }
  /// The status line's notice of what was just done; empty: nothing.
  const std::string& notice() const { return dialogs_.notices().notice(); }
  const LabelRegistry& labels() const { return labels_; }
  ScriptedMouse& mouse() { return mouse_; }
  /// Sets the host that runs the palette's lines of scripts.
  void set_script_host(std::unique_ptr<ScriptHost> host) {
    dialogs_.palette().set_host(std::move(host));
  }
  /// Types into the palette; false where it is closed.
  bool type(const std::string& text);
  std::string clipboard() const;
  /// Does a command as its key would.
  void run_command(CommandId command);
  /// Says in the status line what was just done.
  void tell(const std::string& what);
  bool reached(WaitFor what) const;
  /// Why that will not be reached, one line: all work has ended, and something of it failed. Empty:
  /// it is reached, or may still be.
  std::string problem_before(WaitFor what) const;
  /// True where all numbers that are seen are exact; of the atlas, has_atlas() tells.
  bool exact() const;
  /// Goes through the recorded steps by itself, or stops that.
  void play(bool on);
  bool playing() const { return player_.playing(); }
  /// Scale of the matrix's colours, and the shares of entries beyond its ends.
  struct Colours {
    ColourScale scale;
    ValueHistogram::Beyond beyond;
  };
  /// Of the matrix as it is drawn; nothing while no capture is open.
  std::optional<Colours> colours() const;
  int level() const { return panels_.matrix().seen().level; }
  double texture_mib() const;
  /// How tiles come to their textures, see TileTextures.
  std::string_view upload_way() const { return textures_.upload_way(); }
  TileSourceStatus source_status() const;
  /// DocumentFrame::probe() of what is open, or of side B. Throws Error(file) as
  /// Document::require_unchanged() does.
  std::optional<ProbedEntry> probe(int64_t query, int64_t key, bool of_other = false);
  Window& window() { return *window_; }
  double seconds() const { return clock_.milliseconds() / 1000; }

 private:
  void begin_with(std::unique_ptr<Document> document);
  void show(std::unique_ptr<Document> document);
  void link_textures();
  void prepare();
  void tell_warnings(const Capture& capture);
  void tell_warning(const std::string& warning);
  gl::ReadPixels drawn();
  void open_sample();
  void watch_kept_folders();
  void tell_kept_folder();
  void take_added();
  void tell_added(const AddedToDocument& added);
  void take_letters(std::span<const MapSource> added);
  void open_awaited();
  void ask(PaneSize pane);
  void hold(bool Document::*what, bool on);
  SideB side_b() const;
  Scene scene_now() const;
  void tell_of(const Scene& scene);
  void draw_document(const Ui& ui, const ScreenRect& window, PanelRequests& requests);
  void apply(PanelRequests& requests);
  void act_or_tell(const Action& action);
  EmptyState empty_state();
  void draw_root(const Ui& ui, const ScreenRect& window, PanelRequests& requests);
  bool run_window_command(CommandId command);
  void press_on_panels(const KeyChord& chord);
  void release_choice();
  void toggle_pin();
  bool walk(CommandId command);
  void walk_query(WalkAxis axis, int64_t by);
  std::optional<action::Pan> pan_to(int64_t token, bool key) const;
  void write_first_free(const std::string& name, const std::string& ending,
                        const std::string& failure,
                        const std::function<void(const std::filesystem::path&)>& write);
  SettingPlace setting_place() const;
  ViewState state_of_command(const ToldPlace& told) const;
  ViewState state_of_entry(const ToldEntry& told) const;
  ViewState state_of_text(const std::string& text) const;
  void go_to_place(const std::string& text);
  void try_open_other(const std::filesystem::path& path);
  void advance_film(double now);
  void go_on_saving();
  void take_film_requests(PanelRequests& requests);
  void toggle_film();
  void set_theme(ViewTheme theme);
  void fail(const std::string& title, const std::string& message);
  void write_session_or_fail();
  std::string shown_heads(const ViewState& state) const;
  PaletteContext palette_context() const;
  void copy(CommandId what);
  ViewTheme theme() const;
  double wait_seconds(double limit) const;
  bool is_source_busy() const;
  bool has_come_to_rest() const;
  bool working() const;
  bool is_awaited() const;
  bool is_at_rest() const;
  bool has_atlas() const;
  bool has_film() const;
  bool is_map_seen() const;
  bool is_picture_there() const;
  bool is_line_there() const;
  void advance();
  void go_to_newest();

  Window* window_;
  Settings settings_;
  FrameClock clock_;
  FrameCounters counters_;
  FramePacer pacer_;
  bool news_ = false;        ///< workers brought something since the last frame
  bool draw_again_ = false;  ///< the last frame left something to do
  bool drew_busy_ = false;   ///< work went on when the last frame was begun
  double input_at_ = 0;      ///< when frames were last drawn for somebody's hand
  gl::MapPainter painter_;
  TileTextures textures_;
  PanelSet panels_;
  std::string place_problem_;  ///< why what was typed as a place last is none
  LabelRegistry labels_;
  ScriptedMouse mouse_;
  std::unique_ptr<SampleCapture> sample_;  ///< is open; else null
  std::unique_ptr<Document> document_;
  std::optional<DocumentFrame> frame_;  ///< of the document
  std::string ask_problem_;             ///< why what is shown could not be asked for
  std::string told_problem_;            ///< of the tile source, that was kept as a message
  Following following_;
  std::u32string letters_;  ///< that the fonts have
  /// Settings::kept_in that were not there when the document was opened.
  std::vector<std::filesystem::path> new_folders_;

  Dialogs dialogs_;
  std::optional<std::pair<ViewTheme, float>> applied_theme_;  ///< with the display's scale
  StartScreen start_;
  bool picture_kept_ = false;  ///< of what is open, since it was exact first

  FilmPlayer film_player_;
  FilmSaving saving_;

  bool uploads_left_ = false;
  bool changed_ = true;  ///< since the last frame was drawn
  double opened_at_ = 0;
  TimelinePlayer player_;
  std::optional<double> again_at_;  ///< a frame is due then, though nothing happens
};

}  // namespace attnscope
