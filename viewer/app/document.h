#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "io/capture/capture.h"
#include "io/files/read_progress.h"
#include "viewer/tiles/quick_check.h"
#include "viewer/tiles/texels/texel_reader.h"
#include "viewer/view/head_picker.h"
#include "viewer/view/map_source.h"
#include "viewer/view/session.h"
#include "viewer/view/tile_source.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/view_history.h"

namespace attnscope {

/// Where a capture or an export comes from; what a session writes down.
struct CaptureOrigin {
  std::filesystem::path path;  ///< empty: bare tensors
  BareTensors tensors;
  FactOverrides facts;

  /// The file or folder that names it, without a slash at its end.
  std::filesystem::path name() const;
};

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
  /// Compares a capture that is shown as it was recorded with its own outputs. Borrows it. Empty:
  /// nobody does.
  std::function<std::unique_ptr<QuickCheck>(const Capture&, std::function<void()> wake)> check = {};
};

/// An open capture, or an open export, with everything that belongs to it. Members are destroyed
/// from the last to the first: the workers end before the capture is closed.
struct Document {
  CaptureOrigin origin;
  std::optional<Capture> capture;  ///< none: an export
  std::vector<MapSource> calls;    ///< of the capture, or of the export
  HeadPicker picker;
  ViewLimits limits;
  ViewHistory history;
  std::unique_ptr<TileSource> tiles;
  /// Null where the capture is shown otherwise than it was recorded.
  std::unique_ptr<QuickCheck> quick_check;
  bool warning_told = false;
  bool warning_dismissed = false;
  /// Ends the long reads of a capture before its workers are waited for; null: an export.
  std::unique_ptr<DocumentStop> stop = nullptr;
  /// The latent frame that each picture of the video belongs to; of captures that have any.
  std::vector<int64_t> pictures = {};
  /// A head that is seen in place of the state's, as long as the mouse points at it.
  std::optional<HeadId> preview = {};

  /// What the quick check found and nobody has dismissed.
  std::string warning() const {
    return quick_check && !warning_dismissed ? quick_check->warning() : std::string();
  }
  /// A capture is read with `control`, and no longer than the document is open. Throws what
  /// Capture::open() and read_export_texels() throw, Error(usage) where facts are given with an
  /// export.
  static std::unique_ptr<Document> open(const CaptureOrigin& origin, const ReadControl& control,
                                        const TileSourceMaker& make, std::function<void()> wake);
  /// The state, with the head that is pointed at.
  ViewState shown() const {
    if (!preview || *preview == history.now().head) return history.now();
    return apply_action(history.now(), action::SelectHead{*preview}, limits);
  }
  /// Of shown().
  const MapSource& call() const {
    return calls[static_cast<size_t>(preview.value_or(history.now().head).call)];
  }
  /// Throws Error(file) where a file that the capture's numbers were read from is not as it was
  /// when it was opened. To be called before they leave the window. What is read of an export is
  /// held against its checksums instead.
  void require_unchanged() const {
    if (capture) capture->require_unchanged();
  }
  /// The session that would bring it back.
  Session session(int width, int height) const;
};

}  // namespace attnscope
