#include "core/products/query_volumes.h"

#include <algorithm>

namespace attnscope {

size_t QueryVolumes::list_chosen(const std::vector<int64_t>& tokens) {
  const auto found = std::find(chosen_lists.begin(), chosen_lists.end(), tokens);
  const auto number = static_cast<size_t>(found - chosen_lists.begin());
  if (found == chosen_lists.end()) chosen_lists.push_back(tokens);
  return number;
}

bool QueryVolumes::chosen_alike() const {
  return !volumes.empty() && volumes.front().chosen != 0 &&
         std::all_of(volumes.begin(), volumes.end(), [&](const QueryVolume& volume) {
           return volume.chosen == volumes.front().chosen;
         });
}

std::string QueryVolumes::not_recorded() const {
  Unrecorded any;
  for (const QueryVolume& volume : volumes) {
    const Unrecorded& own = volume.place.unrecorded;
    any = {any.step || own.step, any.layer || own.layer, any.branch || own.branch};
  }
  std::string names = any.text();
  if (model.empty()) names += names.empty() ? "model" : " model";
  return names;
}

namespace {

std::vector<float> part_of(const std::vector<float>& values, IndexRange range) {
  return {values.begin() + range.begin, values.begin() + range.end};
}

}  // namespace

void set_values(QueryVolume& volume, const TokenGrid& tokens, std::vector<float> values) {
  const IndexRange text = tokens.text_range();
  const IndexRange video = tokens.video_range();
  if (tokens.has_map()) {
    if (tokens.has_grid()) volume.video = part_of(values, video);
    volume.text = part_of(values, text);
    for (const TokenSegment& segment : tokens.segments()) {
      const int64_t first = segment.tokens.begin;
      const bool is_volume = tokens.has_grid() && video.contains(first);
      if (is_volume || text.contains(first)) continue;
      volume.others.push_back({segment.name, part_of(values, segment.tokens)});
    }
    return;
  }
  if (video.empty()) {
    volume.text = std::move(values);
    return;
  }
  volume.text.assign(values.begin() + text.begin, values.begin() + text.end);
  values.erase(values.begin() + text.begin, values.begin() + text.end);
  volume.video = std::move(values);
}

}  // namespace attnscope
