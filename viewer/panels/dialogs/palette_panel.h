#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "viewer/commands/palette_item.h"
#include "viewer/panels/scene.h"

namespace attnscope {

/// The command palette: a field to type in, and below it what fits. Its keys come by press(), but
/// for those that type, which ImGui takes: they are kept while takes_keys() says no.
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

  /// The field was there in the last frame, with all of its text: what is typed comes to it.
  bool takes_keys() const { return active_ && !refill_; }
  /// Up, Down, Page Up, Page Down move the mark, Esc closes, Enter takes what is marked of so many
  /// `items`, whose number it gives: those that fit text(). Of an empty field nothing is marked
  /// before the mark is moved.
  std::optional<size_t> press(const KeyChord& chord, size_t items);
  /// Gives the item that was clicked.
  std::optional<size_t> draw(const Ui& ui, const ScreenRect& window,
                             const std::vector<PaletteItem>& items);

 private:
  void mark_first();
  void draw_field(const Ui& ui, float width);
  std::optional<size_t> draw_items(const Ui& ui, const std::vector<PaletteItem>& items,
                                   float width);

  bool open_ = false;
  std::array<char, 512> text_{};
  std::string problem_;
  std::optional<size_t> marked_;
  bool moved_ = false, refill_ = false;
  bool active_ = false;  ///< the field has the keys
};

}  // namespace attnscope
