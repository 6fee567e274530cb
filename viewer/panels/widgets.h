#pragma once

#include <functional>
#include <string>
#include <vector>

#include "viewer/panels/scene.h"

namespace attnscope {

/// The rectangle of the item that was drawn last, registered as `label`.
void mark(const Ui& ui, const std::string& label);
ScreenRect item_rect();

/// Text at a place, not part of ImGui's flow.
enum class Align { left, centre, right };
void put_text(const Ui& ui, ImFont* font, float x, float y, ImU32 colour, const std::string& text,
              Align align = Align::left);
ImVec2 text_size(ImFont* font, const std::string& text);
/// Text in at most `width` pixels, cut with … where it is longer; the whole of it then stands
/// beside the mouse on it. Gives the width that is taken.
float put_fitting(const Ui& ui, ImFont* font, float x, float y, float width, ImU32 colour,
                  const std::string& text, Align align = Align::left);
/// Text of several lines in `width` pixels. Gives its height.
float put_wrapped(const Ui& ui, ImFont* font, float x, float y, float width, ImU32 colour,
                  const std::string& text);
/// A text field as ImGui::InputTextWithHint(), `width` wide, whose hint is cut with … where it is
/// longer; the whole of it then stands beside the mouse. Registered as `label`.
bool text_field(const Ui& ui, const std::string& label, const std::string& hint, float width,
                char* text, size_t size, ImGuiInputTextFlags flags = 0);
float wrapped_height(ImFont* font, const std::string& text, float width);

/// A note beside the mouse, of several lines, wrapped where they are long.
void tooltip(const std::string& text);

/// In place of what cannot be shown: what that is, and below it why, wrapped and in the middle of
/// `rect`. Registered as PANE/Problem. Gives its height, which may be more than that of `rect`.
float put_problem(const Ui& ui, const std::string& pane, const ScreenRect& rect,
                  const std::string& what, const std::string& why);

/// A button with a word or sign; `on` draws it as chosen. Registered as `label`.
bool tool_button(const Ui& ui, const std::string& label, const std::string& text, bool on,
                 const std::string& hint);

/// A button that cannot be pressed here; the hint says why.
void lacking_button(const Ui& ui, const std::string& label, const std::string& text,
                    const std::string& why);

/// Buttons side by side, of which one is chosen; gives the one that was clicked or −1. Registered
/// as PANE/WORD each.
int segmented(const Ui& ui, const std::string& pane, const std::vector<std::string>& words,
              int chosen, const std::string& hint);

/// The width of choice() that has room for the longest of the words.
float choice_width(const Ui& ui, const std::vector<std::string>& words);
/// A caption and a list to choose from; gives what was chosen or −1. `width` is the list's, less
/// where the pane ends before; a word that it cuts is whole beside the mouse. Registered as
/// PANE/CAPTION, and its items, while it is open, as CAPTION/WORD. An open list takes
/// Ui::list_keys: arrows, Home and End mark an item, Enter or Space chooses it, Esc closes the
/// list. `about` tells of a word what stands beside the mouse on its item.
int choice(const Ui& ui, const std::string& pane, const std::string& caption,
           const std::vector<std::string>& words, int chosen, float width,
           const std::function<std::string(const std::string&)>& about = {});

/// The 28 px header of a pane: its title, and the line under it that moves while work is done.
/// Double click maximises the pane, whose header then has a button that leads back (TITLE/Back).
/// `progress` below 0: idle; above 1: how far is not known.
struct PaneHeader {
  std::string title;
  std::string detail;  ///< secondary text after the title, cut where it does not fit
  ViewPane pane = ViewPane::matrix;
  double progress = -1;
  float taken = 0;  ///< pixels at the right that are others'
};
/// Gives the x where the header's text ends. The header takes the top of `rect`.
float pane_header(const Ui& ui, const ScreenRect& rect, const PaneHeader& header,
                  const ViewState& state, PanelRequests& requests);
constexpr float kHeaderHeight = 28;

/// An invisible child window over `rect` that a panel draws in; end with end_pane().
void begin_pane(const Ui& ui, const char* name, const ScreenRect& rect, bool fill = true);
void end_pane();

}  // namespace attnscope
