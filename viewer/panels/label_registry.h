#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace attnscope {

/// A rectangle on the screen, in pixels from the window's top left.
struct ScreenRect {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  float width() const { return x1 - x0; }
  float height() const { return y1 - y0; }
  bool contains(float x, float y) const { return x >= x0 && x < x1 && y >= y0 && y < y1; }
};

/// A piece of text in the frame that was drawn last.
struct WrittenText {
  std::string whole;
  ScreenRect rect;    ///< that is taken
  bool cut = false;   ///< it ends in …
  bool lost = false;  ///< an edge cuts it at a side without a sign
};

/// The items that can be clicked in the frame that was drawn last, by name ("Toolbar/Logit"), and
/// the texts there. Filled while the panels draw; for scripts and tests.
class LabelRegistry {
 public:
  void clear() {
    rects_.clear();
    texts_.clear();
  }
  void add(std::string label, const ScreenRect& rect) {
    rects_.insert_or_assign(std::move(label), rect);
  }
  void write(WrittenText text) { texts_.push_back(std::move(text)); }
  /// In the order in which they were drawn, but for those of ImGui's own controls.
  const std::vector<WrittenText>& texts() const { return texts_; }
  std::optional<ScreenRect> find(const std::string& label) const {
    const auto found = rects_.find(label);
    return found == rects_.end() ? std::nullopt : std::optional(found->second);
  }
  /// All of them, ascending; what an error message lists.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, rect] : rects_) names.push_back(name);
    return names;
  }

 private:
  std::map<std::string, ScreenRect> rects_;
  std::vector<WrittenText> texts_;
};

}  // namespace attnscope
