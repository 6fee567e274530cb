#include "core/products/tokens/part_names.h"

#include "core/base/error.h"
#include "core/problem/key_segments.h"

namespace attnscope {

std::vector<std::string> part_names(const TokenGrid& tokens) {
  const auto parts = text_and_frames(tokens);
  std::vector<std::string> names(parts.size());
  if (!tokens.text_range().empty()) names.front() = "text";
  const int64_t frames =
      tokens.has_grid() ? tokens.frames() : (tokens.video_range().empty() ? 0 : 1);
  for (int64_t t = 0; t < frames; ++t) {
    names[static_cast<size_t>(t + 1)] = tokens.has_grid() ? "t" + std::to_string(t) : "video";
  }
  for (size_t i = 0; i < tokens.segments().size(); ++i) {
    const int64_t group = segment_groups(tokens, i).begin;
    for (size_t part = static_cast<size_t>(frames) + 1; part < parts.size(); ++part) {
      if (parts[part].front() == group) names[part] = one_line(tokens.segments()[i].name);
    }
  }
  return names;
}

}  // namespace attnscope
