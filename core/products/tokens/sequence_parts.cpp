#include "core/products/tokens/sequence_parts.h"

#include <algorithm>

namespace attnscope {
namespace {

void add_part(std::vector<SequencePart>& parts, const std::string& name, IndexRange tokens) {
  if (!tokens.empty()) parts.push_back({name, tokens});
}

}  // namespace

std::vector<SequencePart> sequence_segments(const TokenGrid& tokens) {
  std::vector<SequencePart> parts;
  if (tokens.has_map()) {
    for (const TokenSegment& segment : tokens.segments()) {
      add_part(parts, segment.name, segment.tokens);
    }
    return parts;
  }
  add_part(parts, "text", tokens.text_range());
  add_part(parts, "video", tokens.video_range());
  std::sort(parts.begin(), parts.end(), [](const SequencePart& a, const SequencePart& b) {
    return a.tokens.begin < b.tokens.begin;
  });
  return parts;
}

std::vector<SequencePart> sequence_frames(const TokenGrid& tokens) {
  std::vector<SequencePart> parts;
  for (const SequencePart& segment : sequence_segments(tokens)) {
    if (!tokens.has_grid() || segment.tokens != tokens.video_range()) {
      parts.push_back(segment);
      continue;
    }
    const int64_t frame = tokens.height() * tokens.width();
    for (int64_t t = 0; t < tokens.frames(); ++t) {
      const int64_t first = segment.tokens.begin + t * frame;
      parts.push_back({"t" + std::to_string(t), {first, first + frame}});
    }
  }
  return parts;
}

}  // namespace attnscope
