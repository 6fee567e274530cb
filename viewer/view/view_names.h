#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/view/view_state.h"

namespace attnscope {

// Names of what a state has, as menus, sessions and scripts write them.
std::string_view product_name(ViewProduct product);
std::string_view pane_name(ViewPane pane);
std::string_view theme_name(ViewTheme theme);
std::optional<ViewProduct> parse_product(std::string_view name);
std::optional<ViewPane> parse_pane(std::string_view name);
std::optional<ViewTheme> parse_theme(std::string_view name);
/// All names of the three lists, for messages and menus.
std::vector<std::string> product_names();
std::vector<std::string> pane_names();
std::vector<std::string> theme_names();

}  // namespace attnscope
