#include "viewer/tiles/opened_maps.h"

#include "core/base/error.h"
#include "io/capture/computable.h"
#include "io/export/format/export_manifest.h"
#include "viewer/tiles/texels/texel_reader.h"

namespace attnscope {

std::filesystem::path CaptureOrigin::name() const {
  const std::filesystem::path shown = path.empty() ? std::filesystem::path(tensors.q) : path;
  return shown.has_filename() ? shown : shown.parent_path();
}

namespace {

/// An export, and perhaps a second one that is compared with it.
OpenedMaps open_exports(const CaptureOrigin& origin, const std::filesystem::path& second) {
  if (origin.facts.any()) {
    throw usage_error(origin.path.string() +
                      ": is an export, whose maps are computed already; facts belong to captures");
  }
  OpenedMaps maps;
  maps.exported = read_export_texels(origin.path);
  maps.own_calls = static_cast<int64_t>(maps.exported->calls().size());
  if (!second.empty()) maps.exported = join_texels(maps.exported, read_export_texels(second));
  maps.calls = maps.exported->calls();
  return maps;
}

/// Throws Error(usage) where one of two is an export: no one source both reads and computes maps.
void check_both_alike(const CaptureOrigin& origin, const std::filesystem::path& second) {
  const bool first_read = !origin.path.empty() && is_export_file(origin.path);
  if (first_read == is_export_file(second)) return;
  const std::string exported = first_read ? origin.path.string() : second.string();
  const std::string capture = first_read ? second.string() : origin.name().string();
  throw usage_error(exported + ": is an export, and " + capture +
                    " a capture: compare two captures, or two exports");
}

}  // namespace

OpenedMaps OpenedMaps::open(const CaptureOrigin& origin, const ReadControl& control,
                            const std::filesystem::path& second) {
  if (!second.empty()) check_both_alike(origin, second);
  if (!origin.path.empty() && is_export_file(origin.path)) return open_exports(origin, second);
  OpenedMaps maps;
  maps.capture = std::make_shared<const Capture>(
      origin.path.empty() ? Capture::from_tensors(origin.tensors, origin.facts, control)
                          : Capture::open(origin.path, origin.facts, control));
  require_computable(*maps.capture);
  maps.calls = map_sources(*maps.capture);
  maps.own_calls = static_cast<int64_t>(maps.calls.size());
  if (second.empty()) return maps;
  maps.other.emplace(Capture::open(second, origin.facts, control));
  require_computable(*maps.other);
  const std::vector<MapSource> more = map_sources(*maps.other);
  maps.calls.insert(maps.calls.end(), more.begin(), more.end());
  return maps;
}

std::vector<int64_t> picture_frames(const Capture& capture) {
  std::vector<int64_t> frames;
  for (const FrameFile& frame : capture.frames()) frames.push_back(frame.t);
  return frames;
}

}  // namespace attnscope
