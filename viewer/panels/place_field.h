#pragma once

#include <array>
#include <string>

#include "viewer/panels/widgets.h"

namespace attnscope {

/// The toolbar's field with where one is: shows it, takes another place, typed and Enter, and has
/// it to be copied. A place that is none stays as it was typed, with why below it. Esc brings back
/// where one is. Registered as Toolbar/Place.
class PlaceField {
 public:
  void draw(const Ui& ui, float width, const Scene& scene, PanelRequests& requests);

 private:
  std::array<char, 4096> text_{};  ///< with room for a command
  bool typing_ = false;            ///< the text is a hand's, not Scene::place
  bool asked_ = false;             ///< for a place; the next scene has the answer
  bool reopens_ = false;
};

}  // namespace attnscope
