#include "viewer/view/heads/head_list.h"

namespace attnscope {

std::vector<HeadPattern> parse_head_list(std::string_view list, std::string_view option) {
  std::vector<HeadPattern> patterns;
  while (!list.empty()) {
    const size_t end = list.find(',');
    patterns.push_back(HeadPattern::parse(list.substr(0, end), option));
    if (end == std::string_view::npos) break;
    list.remove_prefix(end + 1);
    // Behind a last comma a head is missing.
    if (list.empty()) HeadPattern::parse(list, option);
  }
  return patterns;
}

}  // namespace attnscope
