#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/index_range.h"
#include "core/problem/token_grid.h"

namespace attnscope {

/// The parts of a key sequence whose masses are told apart, as numbers: 0 is the text that counts,
/// 1 … frames() the latent frames (a single one where there is no grid), frames() + 1 the text that
/// is padding. Of a token map 0 and frames() + 1 are the first segment of text, and every other
/// segment, in order, has two numbers more: for what counts and for its padding. An immutable
/// value; thread-safe.
///
/// Groups are what is added up over rows: 0 the text, padding included, 1 … frames() the frames,
/// and of a token map one for each further segment.
class KeySegments {
 public:
  struct Span {
    IndexRange keys;
    int64_t segment = 0;
  };

  KeySegments() = default;
  /// The parts of one batch item.
  KeySegments(const TokenGrid& keys, int64_t batch);

  /// Ascending, not empty, without gaps.
  const std::vector<Span>& spans() const { return spans_; }
  int64_t frames() const { return frames_; }
  int64_t padding() const { return frames_ + 1; }
  int64_t count() const { return frames_ + 2 + 2 * others_; }
  /// Keys of a segment.
  int64_t size_of(int64_t segment) const;

  int64_t groups() const { return frames_ + 1 + others_; }
  /// The parts that a group is made of: what counts, and its padding, −1 for frames.
  std::pair<int64_t, int64_t> parts_of(int64_t group) const {
    if (group == 0) return {0, padding()};
    if (group <= frames_) return {group, -1};
    const int64_t part = frames_ + 2 + 2 * (group - frames_ - 1);
    return {part, part + 1};
  }
  bool is_padding(int64_t segment) const;
  /// True of a group of text tokens, with their padding.
  bool is_text(int64_t group) const {
    return group == 0 || (group > frames_ && text_[static_cast<size_t>(group - frames_ - 1)]);
  }

 private:
  void add_map(const TokenGrid& keys, int64_t batch);
  void add_video(IndexRange video);

  std::vector<Span> spans_;
  int64_t frames_ = 0;
  int64_t others_ = 0;
  std::vector<bool> text_, padded_;  ///< of the other segments: text, and modality padding
};

/// The groups of a sequence's segments, by the numbers of KeySegments: of segment `number` of a
/// token map those from begin to end (the frames of the video; else one).
IndexRange segment_groups(const TokenGrid& tokens, size_t number);
/// The group of one place of a sequence.
int64_t group_at(const TokenGrid& tokens, int64_t index);
/// The groups that each part of a map of text and frames is made of: the text, with all segments
/// that belong to it, each frame, and each further segment.
std::vector<std::vector<int64_t>> text_and_frames(const TokenGrid& tokens);
/// Groups of a sequence.
int64_t count_groups(const TokenGrid& tokens);

}  // namespace attnscope
