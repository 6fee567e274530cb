#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "io/capture/capture.h"
#include "io/files/read_progress.h"
#include "viewer/remote/remote_tile_source.h"
#include "viewer/session/session.h"
#include "viewer/tiles/opened_maps.h"
#include "viewer/tiles/quick_check.h"
#include "viewer/tiles/texels/texel_reader.h"
#include "viewer/view/heads/head_picker.h"
#include "viewer/view/maps/map_source.h"
#include "viewer/view/maps/tile_source.h"
#include "viewer/view/placed_map.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/view_history.h"

namespace attnscope {

/// The stop of what reads one document: requested as it is closed, or with another stop.
class DocumentStop {
 public:
  explicit DocumentStop(std::stop_token other)
      : with_other_(std::move(other), [this] { source_.request_stop(); }) {}
  ~DocumentStop() { source_.request_stop(); }
  DocumentStop(const DocumentStop&) = delete;
  DocumentStop& operator=(const DocumentStop&) = delete;
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::stop_callback<std::function<void()>> with_other_;  ///< last: it uses the source
};

/// Makes the workers that bring tiles, and the check; `wake` is to be called from any thread when
/// there is something new.
struct TileSourceMaker {
  /// Of a capture's maps, which are computed. Borrows it.
  std::function<std::unique_ptr<TileSource>(const Capture&, std::function<void()> wake)> of_capture;
  /// Of an export's, which are read.
  std::function<std::unique_ptr<TileSource>(std::shared_ptr<const TexelReader>,
                                            std::function<void()> wake)>
      of_export;
  /// Adds the calls of a capture that grew to a source that of_capture() made; borrows it. Empty:
  /// captures cannot be followed. Throws Error(resource) where there is no room for them.
  std::function<void(TileSource& tiles, const Capture& added)> add = {};
  /// Of two captures' maps, those of the second behind those of the first. Borrows both. Empty: no
  /// second one can be opened.
  std::function<std::unique_ptr<TileSource>(const Capture&, const Capture& second,
                                            std::function<void()> wake)>
      of_two = {};
  /// Compares a capture that is shown as it was recorded with its own outputs. Borrows it. Empty:
  /// nobody does.
  std::function<std::unique_ptr<QuickCheck>(const Capture&, std::function<void()> wake)> check = {};
  /// Opens maps on another machine, whose name `origin.path` is (is_remote_name()), and those of
  /// `second` there, where it is not empty; waits for what there is. Empty: there is no way there.
  std::function<std::unique_ptr<RemoteTileSource>(
      const CaptureOrigin& origin, const std::filesystem::path& second, std::function<void()> wake)>
      of_remote = {};
};

/// An open capture, or an open export, with everything that belongs to it. Members are destroyed
/// from the last to the first: the workers end before the capture is closed.
struct Document {
  CaptureOrigin origin;
  std::shared_ptr<const Capture> capture;  ///< null: an export, or on another machine
  /// Additions to the capture since it was opened; calls() of each stand behind those before.
  std::vector<std::shared_ptr<const Capture>> added;
  CaptureOrigin other_origin;    ///< of a second capture or export; its path is empty without one
  std::optional<Capture> other;  ///< the second capture
  std::vector<MapSource> calls;  ///< of the capture, or of the export; then of the second one
  int64_t own_calls = 0;         ///< of them, that are not the second one's
  HeadPicker picker;             ///< of heads of the first
  HeadPicker other_picker;       ///< of heads that can be side B
  ViewLimits limits;
  ViewHistory history;
  std::unique_ptr<TileSource> tiles;
  /// `tiles`, where the maps are on another machine; null: they are here.
  RemoteTileSource* remote = nullptr;
  /// Null where the capture is shown otherwise than it was recorded.
  std::unique_ptr<QuickCheck> quick_check;
  bool warning_told = false;
  bool warning_dismissed = false;
  /// Ends the long reads of a capture before its workers are waited for; null: an export.
  std::unique_ptr<DocumentStop> stop = nullptr;
  /// The latent frame that each picture of the video belongs to; of captures that have any.
  std::vector<int64_t> pictures = {};
  /// The capture that `pictures` are of: the one that was opened, or the newest that was added.
  const Capture* pictured = nullptr;
  /// A head that is seen in place of the state's, as long as the mouse points at it.
  std::optional<HeadId> preview = {};
  /// Side B is seen in place of A, as long as its key is held.
  bool shows_other = false;
  /// The magnifier is seen, as long as its key is held.
  bool magnifies = false;
  mutable PlacedMaps orders = {};

  /// True where its maps are computed, and not read from an export.
  bool is_computed() const { return capture || (remote != nullptr && remote->hello().computed); }
  /// True where a second capture or export is open.
  bool has_second() const { return !other_origin.path.empty(); }
  /// The window's: what is open, of two captures both.
  std::string title() const;
  /// The inputs that a picture or a mask must not replace, nor be written into
  /// (OutputFileOptions::inputs); none where the maps are on another machine.
  std::vector<std::filesystem::path> guarded() const;
  /// The warning of the quick check; empty where it found nothing or somebody has dismissed it.
  std::string warning() const {
    if (warning_dismissed) return "";
    if (remote != nullptr) return remote->warning();
    return quick_check ? quick_check->warning() : "";
  }
  /// A capture is read with `control`, and no longer than the document is open. Throws what
  /// Capture::open() and read_export_texels() throw, Error(usage) where facts are given with an
  /// export.
  /// `second`, where it is given, is opened beside it: Error(usage) where one of the two is an
  /// export and the other a capture.
  static std::unique_ptr<Document> open(const CaptureOrigin& origin, const ReadControl& control,
                                        const TileSourceMaker& make, std::function<void()> wake,
                                        const std::filesystem::path& second = {});
  /// Of maps on another machine that were opened already; `origin` and `second` are their names.
  static std::unique_ptr<Document> of_remote(const CaptureOrigin& origin,
                                             std::unique_ptr<RemoteTileSource> tiles,
                                             const std::filesystem::path& second = {});
  /// The state, with the head that is pointed at, or side B while it is seen in place of A, and
  /// with the number of the order that its map stands in.
  ViewState shown() const;
  /// Makes the head of the second capture that is most like A's side B, with nothing to go back to.
  /// Throws Error(usage) where it has no map of that size.
  void take_nearest_other();
  /// Which tokens stand at the places of the matrix of a state: of side B as of A, so that entries
  /// are compared that are the same ones of the sequences.
  PlacedMap placed(const ViewState& state) const {
    const MapSource& call = call_of(shows_other ? history.now().head : state.head);
    return orders.of(state.order, call.queries, call.keys);
  }
  /// The call of a head that is shown.
  const MapSource& call_of(const HeadId& head) const {
    return calls[static_cast<size_t>(head.call)];
  }
  /// The file or folder that a head is of, without those that it is in.
  std::string name_of(const HeadId& head) const {
    const CaptureOrigin& of = head.call < own_calls ? origin : other_origin;
    return of.name().filename().string();
  }
  std::span<const MapSource> own() const {
    return std::span(calls).first(static_cast<size_t>(own_calls));
  }
  /// Takes the pictures of the capture, or of one that was added to it; false, and nothing else,
  /// where it does not keep those that were there.
  bool take_pictures(const Capture& of);
  /// Takes calls that were added to a capture on another machine; what is shown stays.
  void add(const RemoteAdded& more);
  /// Takes calls that were added to the capture, with `make` that it was opened with; what is shown
  /// stays. Throws what TileSourceMaker::add() and require_whole_calls() throw; nothing was taken
  /// then.
  void add(const std::shared_ptr<const Capture>& more, const TileSourceMaker& make);
  /// Throws Error(file) where a file that the capture's numbers were read from is not as it was
  /// when it was opened. To be called before they leave the window. What is read of an export is
  /// held against its checksums instead.
  void require_unchanged() const {
    if (capture) capture->require_unchanged();
    for (const auto& more : added) more->require_unchanged();
    if (other) other->require_unchanged();
    if (remote != nullptr) remote->require_unchanged();
  }
  /// The session that would bring it back.
  Session session(int width, int height) const;
  SessionHeads session_heads() const { return {picker, other_picker, limits}; }

 private:
  void take_sources(const std::vector<MapSource>& sources);
};

}  // namespace attnscope
