#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "io/pictures/grey_image.h"

namespace attnscope {

/// The largest side that a picture of the video is asked for.
inline constexpr int kMostFrameSide = 2048;

/// A picture of the finished video: its place in the capture's list, and the pixels that it is
/// wanted in.
struct FrameRequest {
  int64_t number = 0;
  int width = 1, height = 1;
  friend auto operator<=>(const FrameRequest&, const FrameRequest&) = default;
};

/// Immutable once it was published.
struct VideoFrame {
  FrameRequest request;
  GreyImage image;            ///< of the size that was asked for
  int width = 0, height = 0;  ///< of the file
  std::string problem;        ///< why there is no picture, one line; empty: there is
};

}  // namespace attnscope
