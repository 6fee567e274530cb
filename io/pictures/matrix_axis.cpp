#include "io/pictures/matrix_axis.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {
namespace {

/// Frames closer than this get no lines.
constexpr int kLeastFrame = 8;
/// About this many round numbers are tried on an axis without a grid.
constexpr int64_t kRoundNumbers = 40;

/// The smallest of 1, 2, 5, 10, 20 … that is not below `value`.
int64_t round_count(int64_t value) {
  for (int64_t power = 1;; power *= 10) {
    for (const int64_t factor : {1, 2, 5}) {
      if (factor * power >= value) return factor * power;
    }
  }
}

}  // namespace

std::vector<AxisLabel> fitting_labels(const std::vector<AxisLabel>& labels, int gap, int extent,
                                      int cap_height) {
  int64_t last = 1;
  for (const AxisLabel& label : labels) last = std::max(last, label.number);
  for (int64_t stride = 1; stride <= 2 * last; stride = round_count(stride + 1)) {
    std::vector<AxisLabel> kept;
    bool fits = true;
    int taken = 0;
    int after_text = 0;
    for (const AxisLabel& label : labels) {
      if (label.number % stride != 0 && label.number >= 0) continue;
      const int end = label.pixel + (extent < 0 ? text_width(label.text, cap_height) : extent);
      if (label.number < 0) {
        // Text at the end of a sequence, behind the label of a frame, gives way itself.
        if (label.pixel >= taken) kept.push_back(label);
        after_text = std::max(taken, end + gap);
      } else if (label.pixel >= after_text) {
        fits = fits && label.pixel >= taken;
        kept.push_back(label);
      } else {
        continue;
      }
      taken = end + gap;
    }
    if (fits) return kept;
  }
  return {};
}

MatrixAxis::MatrixAxis(const TokenGrid& tokens, IndexRange shown, int64_t block, int cell_pixels)
    : shown_(shown),
      block_(block),
      cells_(ceil_div(shown.size(), block)),
      cell_pixels_(cell_pixels),
      has_grid_(tokens.has_grid()) {
  find_segments(tokens);
  find_lines();
}

void MatrixAxis::find_segments(const TokenGrid& tokens) {
  const auto add = [this](IndexRange range, int64_t frame, const std::string& name = "") {
    const int64_t begin = std::max(range.begin, shown_.begin);
    if (begin >= std::min(range.end, shown_.end)) return;
    const int64_t cell = (begin - shown_.begin + block_ / 2) / block_;
    segments_.push_back({begin, std::min(cell, cells_), frame, name});
  };
  const IndexRange video = tokens.video_range();
  if (tokens.has_grid()) {
    const int64_t frame = tokens.height() * tokens.width();
    for (int64_t t = 0; t < tokens.frames(); ++t) {
      add({video.begin + t * frame, video.begin + (t + 1) * frame}, t);
    }
  } else {
    add(video, 0);
  }
  add(tokens.text_range(), -1);
  for (const TokenSegment& part : tokens.other_segments()) add(part.tokens, -1, part.name);
  std::sort(segments_.begin(), segments_.end(),
            [](const Segment& a, const Segment& b) { return a.token < b.token; });
}

void MatrixAxis::find_lines() {
  const auto frames = static_cast<int64_t>(segments_.size());
  const bool apart = frames > 0 && cells_ * cell_pixels_ / frames >= kLeastFrame;
  for (size_t i = 1; i < segments_.size(); ++i) {
    const bool border = segments_[i].frame < 0 || segments_[i - 1].frame < 0;
    const int64_t cell = segments_[i].cell;
    if (!(apart || border) || cell == 0 || cell == cells_) continue;
    if (lines_.empty() || lines_.back() != cell) lines_.push_back(cell);
  }
}

int MatrixAxis::pixel(int64_t cell) const {
  const auto lines = std::upper_bound(lines_.begin(), lines_.end(), cell) - lines_.begin();
  return static_cast<int>(cell * cell_pixels_ + lines);
}

int64_t MatrixAxis::segment_end(size_t i) const {
  return i + 1 < segments_.size() ? segments_[i + 1].cell : cells_;
}

std::vector<AxisLabel> MatrixAxis::names() const {
  std::vector<AxisLabel> labels;
  for (const Segment& s : segments_) {
    if (s.frame < 0) {
      labels.push_back({pixel(s.cell), s.name.empty() ? "text" : s.name, s.frame});
    } else if (has_grid_) {
      labels.push_back({pixel(s.cell), "t " + std::to_string(s.frame), s.frame});
    }
  }
  return labels;
}

std::vector<AxisLabel> MatrixAxis::numbers() const {
  std::vector<AxisLabel> labels;
  if (has_grid_) {
    for (const Segment& s : segments_) {
      labels.push_back({pixel(s.cell), std::to_string(s.token), s.frame});
    }
    return labels;
  }
  const int64_t step = round_count(ceil_div(shown_.size(), kRoundNumbers));
  for (int64_t n = ceil_div(shown_.begin, step); n * step < shown_.end; ++n) {
    const int64_t cell = (n * step - shown_.begin) / block_;
    labels.push_back({pixel(cell), std::to_string(n * step), n});
  }
  return labels;
}

}  // namespace attnscope
