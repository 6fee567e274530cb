#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "viewer/commands/palette_item.h"
#include "viewer/panels/scene.h"

namespace attnscope {

/// The command palette: a field to type in, and below it what fits. Its keys come by press(), but
/// for those that type, which ImGui takes.
class PalettePanel {
 public:
  bool is_open() const { return open_; }
  void open();
  void close() { open_ = false; }
  std::string text() const { return text_.data(); }
  /// Replaces what was typed.
  void set_text(const std::string& text);
  /// Shown below the field, until something is typed.
  void set_problem(const std::string& problem) { problem_ = problem; }

  /// Up, Down, Page Up, Page Down move the mark, Enter takes what is marked, Tab what it is filled
  /// with, Esc closes.
  void press(const KeyChord& chord, size_t items);
  /// Gives the item that was taken since the last frame: by its number, with Enter or a click.
  std::optional<size_t> draw(const Ui& ui, const ScreenRect& window,
                             const std::vector<PaletteItem>& items);

 private:
  void draw_field(const Ui& ui, float width);
  std::optional<size_t> draw_items(const Ui& ui, const std::vector<PaletteItem>& items,
                                   float width);

  bool open_ = false;
  std::array<char, 512> text_{};
  std::string problem_;
  size_t marked_ = 0;
  bool moved_ = false, takes_ = false, refill_ = false;
};

}  // namespace attnscope
