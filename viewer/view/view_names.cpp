#include "viewer/view/view_names.h"

#include <array>
#include <string_view>

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 3> kProducts{"weights", "logits", "lift"};
constexpr std::array<std::string_view, 10> kPanes{"matrix", "query",  "histogram", "atlas",
                                                  "words",  "volume", "timeline",  "mask",
                                                  "frames", "ranked"};
constexpr std::array<std::string_view, 2> kThemes{"dark", "light"};

template <typename Enum, size_t kCount>
std::optional<Enum> parse(const std::array<std::string_view, kCount>& names,
                          std::string_view name) {
  for (size_t i = 0; i < kCount; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view product_name(ViewProduct product) {
  return kProducts[static_cast<size_t>(product)];
}
std::string_view pane_name(ViewPane pane) { return kPanes[static_cast<size_t>(pane)]; }
std::string_view theme_name(ViewTheme theme) { return kThemes[static_cast<size_t>(theme)]; }

std::optional<ViewProduct> parse_product(std::string_view name) {
  return parse<ViewProduct>(kProducts, name);
}
std::optional<ViewPane> parse_pane(std::string_view name) { return parse<ViewPane>(kPanes, name); }
std::optional<ViewTheme> parse_theme(std::string_view name) {
  return parse<ViewTheme>(kThemes, name);
}

std::vector<std::string> product_names() { return {kProducts.begin(), kProducts.end()}; }
std::vector<std::string> pane_names() { return {kPanes.begin(), kPanes.end()}; }
std::vector<std::string> theme_names() { return {kThemes.begin(), kThemes.end()}; }

}  // namespace attnscope
