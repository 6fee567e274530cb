#include "core/problem/key_segments.h"

#include <algorithm>

namespace attnscope {

KeySegments::KeySegments(const TokenGrid& keys, int64_t batch) {
  const IndexRange video = keys.video_range();
  frames_ = keys.has_grid() ? keys.frames() : (video.empty() ? 0 : 1);
  const auto add = [&](IndexRange range, int64_t segment) {
    if (!range.empty()) spans_.push_back({range, segment});
  };
  const auto add_video = [&] {
    const int64_t frame_keys = frames_ == 0 ? 0 : video.size() / frames_;
    for (int64_t t = 0; t < frames_; ++t) {
      add({video.begin + t * frame_keys, video.begin + (t + 1) * frame_keys}, 1 + t);
    }
  };
  const auto add_text = [&] {
    const IndexRange text = keys.text_range();
    int64_t valid = text.size();
    if (!keys.text_valid().empty()) {
      const auto item = keys.text_valid().size() == 1 ? size_t{0} : static_cast<size_t>(batch);
      valid = std::min(valid, keys.text_valid()[item]);
    }
    add({text.begin, text.begin + valid}, 0);
    add({text.begin + valid, text.end}, padding());
  };
  if (keys.text_range().begin <= video.begin) {
    add_text();
    add_video();
  } else {
    add_video();
    add_text();
  }
}

int64_t KeySegments::size_of(int64_t segment) const {
  int64_t size = 0;
  for (const Span& span : spans_) size += span.segment == segment ? span.keys.size() : 0;
  return size;
}

}  // namespace attnscope
