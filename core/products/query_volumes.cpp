#include "core/products/query_volumes.h"

namespace attnscope {

void set_values(QueryVolume& volume, const TokenGrid& tokens, std::vector<float> values) {
  const IndexRange text = tokens.text_range();
  if (tokens.video_range().empty()) {
    volume.text = std::move(values);
    return;
  }
  volume.text.assign(values.begin() + text.begin, values.begin() + text.end);
  values.erase(values.begin() + text.begin, values.begin() + text.end);
  volume.video = std::move(values);
}

}  // namespace attnscope
