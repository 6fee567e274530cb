#pragma once

#include <array>
#include <optional>

#include "viewer/panels/widgets.h"

namespace attnscope {

/// The words of the prompt with the mass that each gets from the query that is looked at, or on
/// average over the video; special tokens and padding apart. Clicks choose whose film is seen.
class WordsPanel {
 public:
  void draw(const Ui& ui, const ScreenRect& rect, const Scene& scene, PanelRequests& requests);

  /// At most two lines of what is said of the words, and what they are at length.
  struct Foot {
    struct Line {
      ImU32 colour;
      std::string text;
    };
    std::vector<Line> lines;
    std::string about;  ///< beside the mouse; empty: there is no more
  };

 private:
  struct Columns {
    float name, number, bar, end;  ///< x: where names begin, numbers and bars end and begin
  };
  void draw_header(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                   PanelRequests& requests);
  float draw_controls(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                      PanelRequests& requests);
  void draw_list(const Ui& ui, const ScreenRect& area, const Scene& scene, const Foot& foot,
                 PanelRequests& requests);
  void draw_row(const Ui& ui, const ScreenRect& row, const Columns& at, const WordRow& word,
                const Scene& scene, PanelRequests& requests);
  void click(const WordRow& word, const Scene& scene, PanelRequests& requests);

  std::optional<int64_t> anchor_;  ///< the word that was clicked last: where ranges begin
  std::array<char, 64> filter_{};  ///< what stands in the field
  bool typing_ = false;
};

}  // namespace attnscope
