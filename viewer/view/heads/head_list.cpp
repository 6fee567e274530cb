#include "viewer/view/heads/head_list.h"

#include <set>
#include <string>
#include <utility>

namespace attnscope {

std::vector<HeadPattern> parse_head_list(std::string_view list, std::string_view option) {
  std::vector<HeadPattern> patterns;
  std::set<std::string> seen;
  while (!list.empty()) {
    const size_t end = list.find(',');
    HeadPattern pattern = HeadPattern::parse(list.substr(0, end), option);
    if (seen.insert(pattern.facts()).second) patterns.push_back(std::move(pattern));
    if (end == std::string_view::npos) break;
    list.remove_prefix(end + 1);
    // Behind a last comma a head is missing.
    if (list.empty()) HeadPattern::parse(list, option);
  }
  return patterns;
}

}  // namespace attnscope
