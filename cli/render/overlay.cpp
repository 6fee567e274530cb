#include "cli/render/overlay.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "core/base/error.h"
#include "core/problem/token_grid.h"
#include "io/pictures/png_reader.h"

namespace attnscope {
namespace {

/// Frames are drawn at most about this large.
constexpr int kMostSide = 512;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// The run of digits at `at` without its leading zeros; `at` is moved behind it.
std::string take_number(const std::string& text, size_t& at) {
  size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  while (at + 1 < end && text[at] == '0') ++at;
  const std::string number = text.substr(at, end - at);
  at = end;
  return number;
}

/// frame2 before frame10.
bool natural_less(const std::string& a, const std::string& b) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::string m = take_number(a, i);
      const std::string n = take_number(b, j);
      if (m.size() != n.size()) return m.size() < n.size();
      if (m != n) return m < n;
      continue;
    }
    if (a[i] != b[j]) return a[i] < b[j];
    ++i;
    ++j;
  }
  if ((i < a.size()) != (j < b.size())) return j < b.size();
  return a < b;
}

std::vector<std::filesystem::path> png_files(const std::filesystem::path& folder,
                                             const std::string& option) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error) throw file_error(folder.string(), "--overlay", error.message());
  for (; entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    if (error) throw file_error(folder.string(), "--overlay", error.message());
    std::string extension = entries->path().extension().string();
    std::transform(extension.begin(), extension.end(), extension.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (extension == ".png") files.push_back(entries->path());
  }
  if (files.empty()) throw usage_error(option + ": the folder has no .png files");
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return natural_less(a.filename().string(), b.filename().string());
  });
  return files;
}

}  // namespace

OverlayFiles find_overlay(const std::string& text, const Capture& capture) {
  OverlayFiles overlay;
  if (text.empty()) return overlay;
  overlay.option = "--overlay " + text;
  if (text != "capture") {
    overlay.files = png_files(text, overlay.option);
    return overlay;
  }
  if (capture.frames().empty()) {
    throw usage_error(
        "--overlay capture: the capture has no frames; give a folder of .png files, or add them "
        "with attnscope convert --video-frames DIR");
  }
  for (const FrameFile& frame : capture.frames()) {
    overlay.files.push_back(frame.file);
    overlay.frames.push_back(frame.t);
  }
  overlay.capture = &capture;
  return overlay;
}

std::vector<int64_t> latent_frames_of(const OverlayFiles& overlay, int64_t latent_frames,
                                      const VideoGeometry& geometry) {
  if (overlay.empty() || !overlay.frames.empty()) return overlay.frames;
  const auto count = static_cast<int64_t>(overlay.files.size());
  const int64_t video = TokenGrid::video_frames(latent_frames - 1, geometry).end;
  if (count != latent_frames && count != video) {
    throw usage_error(fmt::format(
        "{}: {} pictures fit neither {} latent frames nor their {} video frames "
        "({}, then {} each)",
        overlay.option, count, latent_frames, video, geometry.first_frames, geometry.frames));
  }
  std::vector<int64_t> frames;
  for (int64_t t = 0; t < latent_frames; ++t) {
    const int64_t own = count == latent_frames ? 1 : TokenGrid::video_frames(t, geometry).size();
    frames.insert(frames.end(), static_cast<size_t>(own), t);
  }
  return frames;
}

std::vector<FilmMoment> overlay_moments(const OverlayFiles& overlay, int64_t latent_frames,
                                        const VideoGeometry& geometry, FilmTime time) {
  const std::vector<int64_t> frames = latent_frames_of(overlay, latent_frames, geometry);
  std::vector<FilmMoment> moments = film_moments(latent_frames, frames, time);
  for (const FilmMoment& moment : moments) {
    if (overlay.empty() || moment.picture >= 0) continue;
    throw usage_error(
        fmt::format("{}: no picture is recorded for latent frame {}", overlay.option, moment.t));
  }
  return moments;
}

Overlay::Overlay(const OverlayFiles& files, const std::vector<FilmMoment>& moments,
                 MemoryBudget& budget) {
  if (files.empty()) return;
  reservation_ =
      budget.reserve(kMostSide * kMostSide * static_cast<int64_t>(moments.size()) + kMaxPngPixels,
                     "the video under the picture");
  for (const FilmMoment& moment : moments) {
    const std::filesystem::path& file = files.files[static_cast<size_t>(moment.picture)];
    GreyImage image = files.capture == nullptr
                          ? read_png_grey(file)
                          : read_png_grey(*files.capture->open_frame({file, 0}));
    const int longer = std::max(image.width, image.height);
    if (longer > kMostSide) {
      image = resized(image, std::max(1, image.width * kMostSide / longer),
                      std::max(1, image.height * kMostSide / longer));
    }
    images_.push_back(std::move(image));
  }
}

}  // namespace attnscope
