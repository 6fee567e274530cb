#include "viewer/panels/theme.h"

#include <cmath>

namespace attnscope {
namespace {

constexpr ImU32 rgb(unsigned hex, unsigned alpha = 255) {
  return IM_COL32(hex >> 16 & 0xff, hex >> 8 & 0xff, hex & 0xff, alpha);
}

/// Of any colour that lies beside one of these with a black edge, one of the two has a contrast of
/// 3 with it at least.
constexpr ImU32 kQueryMark = rgb(0x62b4ff), kKeyMark = rgb(0xff9f43);

constexpr Theme kDark{.window = rgb(0x101214),
                      .pane = rgb(0x16191d),
                      .border = rgb(0x262b31),
                      .text = rgb(0xd7dde3),
                      .secondary = rgb(0x8b95a1),
                      .raised = rgb(0x1f2429),
                      .hovered = rgb(0x2a3037),
                      .pressed = rgb(0x363e47),
                      .query = rgb(0x4aa8ff),
                      .key = rgb(0xff9f43),
                      .side_b = rgb(0xc678dd),
                      .query_mark = kQueryMark,
                      .key_mark = kKeyMark,
                      .plain_mark = rgb(0xffffff),
                      .mark_edge = rgb(0x000000),
                      .problem = rgb(0xe5686f),
                      .nothing = rgb(0x070809),
                      .hatch = rgb(0x40454a),
                      .masked = rgb(0x23282e),
                      .masked_dot = rgb(0x68737f),
                      .grid = rgb(0xffffff, 70),
                      .grid_shadow = rgb(0x000000, 60),
                      .veil = rgb(0x08090a, 170)};

constexpr Theme kLight{.window = rgb(0xeceff2),
                       .pane = rgb(0xffffff),
                       .border = rgb(0xcfd6dc),
                       .text = rgb(0x1b2025),
                       .secondary = rgb(0x5b6672),
                       .raised = rgb(0xf0f3f5),
                       .hovered = rgb(0xe2e7eb),
                       .pressed = rgb(0xd0d8df),
                       .query = rgb(0x1270c8),
                       .key = rgb(0xb35600),
                       .side_b = rgb(0x9a45b8),
                       .query_mark = kQueryMark,
                       .key_mark = kKeyMark,
                       .plain_mark = rgb(0xffffff),
                       .mark_edge = rgb(0x000000),
                       .problem = rgb(0xc2333c),
                       .nothing = rgb(0xdfe3e7),
                       .hatch = rgb(0x40454a),
                       .masked = rgb(0xf4f6f8),
                       .masked_dot = rgb(0x9aa4ae),
                       .grid = rgb(0xffffff, 90),
                       .grid_shadow = rgb(0x000000, 60),
                       .veil = rgb(0xd8dde2, 170)};

void set_colours(ImGuiStyle& style, const Theme& t) {
  const auto set = [&](ImGuiCol role, ImU32 colour) { style.Colors[role] = to_vec4(colour); };
  for (int i = 0; i < ImGuiCol_COUNT; ++i) set(i, t.raised);
  set(ImGuiCol_Text, t.text);
  set(ImGuiCol_TextDisabled, t.secondary);
  set(ImGuiCol_WindowBg, t.window);
  set(ImGuiCol_ChildBg, IM_COL32_BLACK_TRANS);
  set(ImGuiCol_PopupBg, t.pane);
  set(ImGuiCol_Border, t.border);
  set(ImGuiCol_BorderShadow, IM_COL32_BLACK_TRANS);
  set(ImGuiCol_FrameBgHovered, t.hovered);
  set(ImGuiCol_FrameBgActive, t.pressed);
  set(ImGuiCol_ScrollbarBg, IM_COL32_BLACK_TRANS);
  set(ImGuiCol_ScrollbarGrab, t.hovered);
  set(ImGuiCol_ScrollbarGrabHovered, t.pressed);
  set(ImGuiCol_ScrollbarGrabActive, t.pressed);
  set(ImGuiCol_CheckMark, t.text);
  set(ImGuiCol_ButtonHovered, t.hovered);
  set(ImGuiCol_ButtonActive, t.pressed);
  set(ImGuiCol_Header, t.hovered);
  set(ImGuiCol_HeaderHovered, t.hovered);
  set(ImGuiCol_HeaderActive, t.pressed);
  set(ImGuiCol_Separator, t.border);
  set(ImGuiCol_TextSelectedBg, faded(t.query, 0.35f));
  set(ImGuiCol_NavHighlight, faded(t.query, 0.6f));
  set(ImGuiCol_ModalWindowDimBg, t.veil);
}

}  // namespace

ImVec4 to_vec4(ImU32 colour) { return ImGui::ColorConvertU32ToFloat4(colour); }

ImU32 faded(ImU32 colour, float opacity) {
  const auto alpha = static_cast<ImU32>(std::lround(opacity * 255.0f));
  return (colour & ~IM_COL32_A_MASK) | (alpha << IM_COL32_A_SHIFT);
}

ImU32 ink_on(ImU32 ground) {
  const ImVec4 c = to_vec4(ground);
  const float luminance = 0.2126f * c.x + 0.7152f * c.y + 0.0722f * c.z;
  return luminance > 120.0f / 255 ? IM_COL32(0, 0, 0, 220) : IM_COL32(255, 255, 255, 220);
}

const Theme& theme_of(ViewTheme theme) { return theme == ViewTheme::light ? kLight : kDark; }

void apply_theme(const Theme& theme, float scale) {
  ImGuiStyle style;
  style.WindowPadding = {0, 0};
  style.FramePadding = {8, 4};
  style.ItemSpacing = {8, 6};
  style.ItemInnerSpacing = {4, 4};
  style.CellPadding = {8, 4};
  style.WindowRounding = 3;
  style.ChildRounding = 0;
  style.FrameRounding = 3;
  style.PopupRounding = 3;
  style.ScrollbarRounding = 3;
  style.GrabRounding = 3;
  style.ScrollbarSize = 8;
  style.WindowBorderSize = 0;
  style.ChildBorderSize = 0;
  style.PopupBorderSize = 1;
  style.FrameBorderSize = 0;
  style.WindowMinSize = {16, 16};
  style.ScaleAllSizes(scale);
  set_colours(style, theme);
  ImGui::GetStyle() = style;
}

}  // namespace attnscope
