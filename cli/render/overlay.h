#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/problem/token_grid.h"
#include "core/products/film_time.h"
#include "io/capture/capture.h"
#include "io/pictures/grey_image.h"

namespace attnscope {

/// The pictures that --overlay names, and which latent frame each belongs to.
struct OverlayFiles {
  std::string option;  ///< how messages name it: "--overlay DIR"
  std::vector<std::filesystem::path> files;
  /// [files]: the latent frame that a capture's own frames are recorded for; empty for a folder.
  std::vector<int64_t> frames;
  const Capture* capture = nullptr;  ///< whose frames they are; null for a folder

  bool empty() const { return files.empty(); }
};

/// "capture" for the frames recorded with it, else a folder with PNG files, in the order of their
/// names with numbers in them compared as numbers. Nothing for an empty text. Throws Error(usage)
/// where there are no frames, Error(file) where the folder cannot be read.
OverlayFiles find_overlay(const std::string& text, const Capture& capture);

/// [files]: the latent frame of each: the one that it is recorded for; of a folder that of its
/// place where there are as many, the one that covers it by `geometry` where there is one for every
/// video frame; else Error(usage).
std::vector<int64_t> latent_frames_of(const OverlayFiles& files, int64_t latent_frames,
                                      const VideoGeometry& geometry = {});

/// The moments of a film over these pictures; latent ones without a picture where there are none.
/// Throws Error(usage) where a latent frame has no picture in latent time.
std::vector<FilmMoment> overlay_moments(const OverlayFiles& files, int64_t latent_frames,
                                        const VideoGeometry& geometry, FilmTime time);

/// A picture for each of the moments. Pictures larger than frames are drawn are made smaller.
/// Reserves their memory from `budget`.
class Overlay {
 public:
  Overlay(const OverlayFiles& files, const std::vector<FilmMoment>& moments, MemoryBudget& budget);
  std::vector<GreyImage> take() { return std::move(images_); }

 private:
  MemoryReservation reservation_;
  std::vector<GreyImage> images_;
};

}  // namespace attnscope
