#include "core/problem/key_segments.h"

#include <algorithm>

namespace attnscope {
namespace {

int64_t frames_of(const TokenGrid& tokens) {
  return tokens.has_grid() ? tokens.frames() : (tokens.video_range().empty() ? 0 : 1);
}

bool is_first_text(const TokenGrid& tokens, const TokenSegment& segment) {
  const IndexRange text = tokens.text_range();
  return !text.empty() && segment.tokens.begin == text.begin;
}

}  // namespace

KeySegments::KeySegments(const TokenGrid& keys, int64_t batch) {
  const IndexRange video = keys.video_range();
  frames_ = frames_of(keys);
  if (keys.has_map()) {
    add_map(keys, batch);
    return;
  }
  const auto add = [&](IndexRange range, int64_t segment) {
    if (!range.empty()) spans_.push_back({range, segment});
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
    add_video(video);
  } else {
    add_video(video);
    add_text();
  }
}

void KeySegments::add_video(IndexRange video) {
  const int64_t frame_keys = frames_ == 0 ? 0 : video.size() / frames_;
  for (int64_t t = 0; t < frames_ && frame_keys > 0; ++t) {
    spans_.push_back({{video.begin + t * frame_keys, video.begin + (t + 1) * frame_keys}, 1 + t});
  }
}

void KeySegments::add_map(const TokenGrid& keys, int64_t batch) {
  for (size_t i = 0; i < keys.segments().size(); ++i) {
    const TokenSegment& segment = keys.segments()[i];
    if (keys.class_of(i) == Segment::video) {
      add_video(segment.tokens);
      continue;
    }
    int64_t counts = 0, pads = padding();
    if (!is_first_text(keys, segment)) {
      counts = frames_ + 2 + 2 * others_++;
      pads = counts + 1;
      text_.push_back(segment.modality == Modality::text);
      padded_.push_back(segment.modality == Modality::padding);
    }
    // Runs of tokens that are alike.
    for (int64_t begin = 0; begin < segment.tokens.size();) {
      const bool valid = segment.is_valid(begin, batch);
      int64_t end = begin + 1;
      while (end < segment.tokens.size() && segment.is_valid(end, batch) == valid) ++end;
      spans_.push_back(
          {{segment.tokens.begin + begin, segment.tokens.begin + end}, valid ? counts : pads});
      begin = end;
    }
  }
}

bool KeySegments::is_padding(int64_t segment) const {
  if (segment <= frames_) return false;
  const int64_t other = segment - frames_ - 2;
  return other < 0 || other % 2 == 1 || padded_[static_cast<size_t>(other / 2)];
}

int64_t KeySegments::size_of(int64_t segment) const {
  int64_t size = 0;
  for (const Span& span : spans_) size += span.segment == segment ? span.keys.size() : 0;
  return size;
}

IndexRange segment_groups(const TokenGrid& tokens, size_t number) {
  const int64_t frames = frames_of(tokens);
  if (tokens.class_of(number) == Segment::video) return {1, frames + 1};
  int64_t group = frames;
  for (size_t i = 0; i <= number; ++i) {
    const bool own =
        tokens.class_of(i) != Segment::video && !is_first_text(tokens, tokens.segments()[i]);
    group += own ? 1 : 0;
  }
  if (is_first_text(tokens, tokens.segments()[number])) group = 0;
  return {group, group + 1};
}

int64_t group_at(const TokenGrid& tokens, int64_t index) {
  if (const auto place = tokens.coord(index)) return 1 + place->t;
  if (!tokens.has_map()) return tokens.segment(index) == Segment::video ? 1 : 0;
  return segment_groups(tokens, tokens.segment_number(index)).begin;
}

std::vector<std::vector<int64_t>> text_and_frames(const TokenGrid& tokens) {
  std::vector<std::vector<int64_t>> parts(static_cast<size_t>(frames_of(tokens) + 1));
  for (size_t part = 0; part < parts.size(); ++part) parts[part] = {static_cast<int64_t>(part)};
  for (size_t i = 0; i < tokens.segments().size(); ++i) {
    const TokenSegment& segment = tokens.segments()[i];
    if (tokens.class_of(i) == Segment::video || is_first_text(tokens, segment)) continue;
    const int64_t group = segment_groups(tokens, i).begin;
    if (tokens.text_range().contains(segment.tokens.begin)) {
      parts.front().push_back(group);
    } else {
      parts.push_back({group});
    }
  }
  return parts;
}

int64_t count_groups(const TokenGrid& tokens) { return KeySegments(tokens, 0).groups(); }

}  // namespace attnscope
