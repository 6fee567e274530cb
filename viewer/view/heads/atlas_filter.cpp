#include "viewer/view/heads/atlas_filter.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace attnscope {
namespace {

bool is_among(const Selection& selection, int64_t number, int64_t last) {
  const std::vector<int64_t> chosen = selection.resolve_count(last + 1);
  return std::binary_search(chosen.begin(), chosen.end(), number);
}

}  // namespace

AtlasFilter AtlasFilter::parse(std::string_view text) {
  AtlasFilter filter;
  std::string condition;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (word.rfind("layers=", 0) == 0) {
      filter.layers_ = Selection::parse(word.substr(7), "layers=");
    } else if (word.rfind("heads=", 0) == 0) {
      filter.heads_ = Selection::parse(word.substr(6), "heads=");
    } else {
      condition += (condition.empty() ? "" : " ") + word;
    }
  }
  if (!condition.empty()) filter.condition_ = HeadCondition::parse(condition, "atlas filter");
  return filter;
}

bool AtlasFilter::matches(const HeadName& head, const HeadSketch* sketch, int64_t last_layer,
                          int64_t last_head) const {
  const bool no_layer = head.layer < 0 || head.place.unrecorded.layer;
  if (layers_ && (!is_among(*layers_, head.layer, last_layer) || no_layer)) return false;
  if (heads_ && !is_among(*heads_, head.head, last_head)) return false;
  ConditionedHead conditioned{head};
  if (sketch != nullptr) {
    conditioned.head_class = sketch->head_class;
    conditioned.number = [&](const HeadField& field) { return sketch->number(field); };
  }
  return condition_.holds(conditioned);
}

}  // namespace attnscope
