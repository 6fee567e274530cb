#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/report/cell_map.h"
#include "cli/report/report_heads.h"
#include "cli/report/report_work.h"
#include "web/figure/head/figure_document.h"
#include "web/report/report_page.h"

namespace attnscope {

/// The cells of a larger map on a side, at most.
inline constexpr int64_t kLookCells = 256;
/// Heads of a page that carry a figure, at most.
inline constexpr size_t kMostFigures = 8;

/// A head that is looked at more closely: facts of "looks", with the arrays that they name.
struct ReportLook {
  size_t head = 0;
  OrderedJson facts;
  std::vector<NamedBytes> data;
};

/// Begin and end of each part of a sequence, in cells of so many tokens.
OrderedJson marks_of(const TokenGrid& tokens, int64_t tokens_a_cell);

/// `pictures`: [latent frame] which of the page's pictures, −1: none. `sample`: rows of a map; 0:
/// all. `input_name` for the commands that the page tells.
ReportLook look_at(StreamRun& run, const MeasuredHead& head, size_t place, int64_t sample,
                   const std::vector<int64_t>& pictures, const std::string& input_name);

/// A figure of a head, and what its page's arrays borrow.
struct HeldFigure {
  MemoryReservation held;
  FigureMap map;
  FigureArrays arrays;
  int64_t stride = 1;
  int64_t bytes = 0;  ///< in the page, without what all figures share
  ReportFigure figure;
};

/// A figure of at most `most` bytes: of every query and key, or where `may_stride` of every N-th
/// with the smallest N that fits. Null where none fits; throws FigureRefusal where there can be
/// none.
std::unique_ptr<HeldFigure> make_held_figure(StreamRun& run, const MeasuredHead& head, size_t place,
                                             int64_t most, bool may_stride,
                                             const std::string& input_name,
                                             const std::string& title);

}  // namespace attnscope
