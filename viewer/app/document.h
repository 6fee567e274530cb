#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "io/capture.h"
#include "viewer/state/capture_glance.h"
#include "viewer/state/head_picker.h"
#include "viewer/state/session.h"
#include "viewer/state/tile_source.h"
#include "viewer/state/view_history.h"

namespace attnscope {

/// Where a capture comes from; what a session writes down.
struct CaptureOrigin {
  std::filesystem::path path;  ///< empty: bare tensors
  BareTensors tensors;
  FactOverrides facts;

  /// The file or folder that names it, without a slash at its end.
  std::filesystem::path name() const;
};

/// Makes the worker that computes a capture's tiles; the function is to be called from any thread
/// when there is something new.
using MakeTileSource =
    std::function<std::unique_ptr<TileSource>(const Capture&, std::function<void()> wake)>;

/// An open capture with everything that belongs to it. Members are destroyed from the last to the
/// first: the workers end before the capture is closed.
struct Document {
  CaptureOrigin origin;
  Capture capture;
  HeadPicker picker;
  ViewLimits limits;
  ViewHistory history;
  std::unique_ptr<TileSource> tiles;
  /// Null where the capture is shown otherwise than it was recorded.
  std::unique_ptr<CaptureGlance> glance;
  bool warning_told = false;
  bool warning_dismissed = false;

  /// What the glance found and nobody has dismissed.
  std::string warning() const {
    return glance && !warning_dismissed ? glance->warning() : std::string();
  }
  /// Throws what Capture::open() throws.
  static std::unique_ptr<Document> open(const CaptureOrigin& origin, const MakeTileSource& make,
                                        std::function<void()> wake);
  const CallEntry& call() const {
    return capture.calls()[static_cast<size_t>(history.now().head.call)];
  }
  /// The session that would bring it back.
  Session session(int width, int height) const;
};

}  // namespace attnscope
