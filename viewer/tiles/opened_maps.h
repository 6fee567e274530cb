#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "io/capture/capture.h"
#include "io/files/read_progress.h"
#include "viewer/tiles/texels/texel_reader.h"
#include "viewer/view/maps/map_source.h"

namespace attnscope {

/// Where a capture or an export comes from; what a session writes down.
struct CaptureOrigin {
  std::filesystem::path path;  ///< empty: bare tensors
  BareTensors tensors;
  FactOverrides facts;

  /// The file or folder that names it, without a slash at its end.
  std::filesystem::path name() const;
};

/// A capture or an export that was opened to be looked at, and perhaps a second one beside it.
struct OpenedMaps {
  std::shared_ptr<const Capture> capture;       ///< null: an export
  std::optional<Capture> other;                 ///< the second capture
  std::shared_ptr<const TexelReader> exported;  ///< of an export, or of two; null: a capture
  std::vector<MapSource> calls;                 ///< of the first, then of the second
  int64_t own_calls = 0;                        ///< of them, that are not the second one's

  /// Captures are read with `control`. Throws what Capture::open(), require_whole_calls() and
  /// read_export_texels() throw, Error(usage) where facts are given with an export, or where of two
  /// one is an export and the other a capture. `second`: empty where there is none.
  static OpenedMaps open(const CaptureOrigin& origin, const ReadControl& control,
                         const std::filesystem::path& second = {});
};

/// The latent frame that each picture of the capture's video belongs to; empty: it has none.
std::vector<int64_t> picture_frames(const Capture& capture);

}  // namespace attnscope
