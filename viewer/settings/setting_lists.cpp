#include "viewer/settings/setting_lists.h"

#include <algorithm>
#include <iterator>

namespace attnscope {

const std::vector<Setting>& settings() {
  static const std::vector<Setting> kAll = [] {
    std::vector<Setting> all;
    for (auto* const list : {head_settings, map_settings, pane_settings, film_and_mask_settings,
                             comparison_settings}) {
      std::vector<Setting> more = list();
      std::move(more.begin(), more.end(), std::back_inserter(all));
    }
    return all;
  }();
  return kAll;
}

}  // namespace attnscope
