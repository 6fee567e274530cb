#include "viewer/view/heads/atlas_filter.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "core/base/error.h"

namespace attnscope {
namespace {

bool is_among(const std::optional<std::vector<int64_t>>& numbers, int64_t number) {
  return !numbers || std::binary_search(numbers->begin(), numbers->end(), number);
}

}  // namespace

AtlasFilter AtlasFilter::parse(std::string_view text) {
  AtlasFilter filter;
  std::string condition, behind;
  bool is_plain = true;  // all must hold, in any order
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    const bool of_layers = word.starts_with("layers="), of_heads = word.starts_with("heads=");
    if (!of_layers && !of_heads) {
      condition += (condition.empty() ? "" : " ") + word;
      is_plain &= word != "or" && word != "not" && word.find_first_of("()") == std::string::npos;
      continue;
    }
    if (!condition.empty()) behind = word;
    (of_layers ? filter.layers_ : filter.heads_) =
        Selection::parse(word.substr(word.find('=') + 1), of_layers ? "layers=" : "heads=");
  }
  if (!behind.empty() && !is_plain) {
    throw usage_error("atlas filter: " + one_line(behind) +
                      ": lists stand before a condition with or, not or brackets (in it, "
                      "layer=0-3 and head=1,2 compare)");
  }
  if (!condition.empty()) filter.condition_ = HeadCondition::parse(condition, "atlas filter");
  return filter;
}

void AtlasFilter::resolve(int64_t last_layer, int64_t last_head) {
  if (layers_) layer_numbers_ = layers_->resolve_count(last_layer + 1);
  if (heads_) head_numbers_ = heads_->resolve_count(last_head + 1);
}

bool AtlasFilter::matches(const HeadName& head, const HeadSketch* sketch) const {
  const bool no_layer = head.layer < 0 || head.place.unrecorded.layer;
  if (layers_ && (no_layer || !is_among(layer_numbers_, head.layer))) return false;
  if (!is_among(head_numbers_, head.head)) return false;
  ConditionedHead conditioned{head};
  if (sketch != nullptr) {
    conditioned.head_class = sketch->head_class;
    conditioned.number = [&](const HeadField& field) { return sketch->number(field); };
  }
  return condition_.holds(conditioned);
}

}  // namespace attnscope
