#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "io/files/json_types.h"
#include "web/figure/figure_page.h"

namespace attnscope {

/// A head whose exact map can be opened within the report: what FigurePage has of it.
struct ReportFigure {
  int64_t head = 0;  ///< which of the report's heads
  OrderedJson facts;
  std::vector<FigureBytes> data;
};

/// The contents of a report beside the parts that all have. Texts may hold anything. The names of
/// `data` are those that `facts` (attnscope-report/1) refer to. The bytes are borrowed.
struct ReportPage {
  std::string title;
  const OrderedJson& facts;
  std::vector<FigureBytes> data;
  std::vector<ReportFigure> figures;
  PageStyle style = PageStyle::reader;
};

/// Bytes of what is the same in all reports: styles, scripts and colours; `with_figures`: and what
/// opens exact maps, the engine among it.
int64_t report_frame_bytes(bool with_figures = true);

/// Bytes of the page that `write_report_page` writes. Writes nothing, and encodes no data.
int64_t report_bytes(const ReportPage& page);

/// The page as one HTML document, piece by piece. Nothing in it can be taken for markup or script
/// but what is: texts are escaped where they stand, and the page's policy allows its own scripts
/// alone and no address. Without JavaScript it shows its title, what could not be read, and what
/// was captured. Throws what `append` throws. `facts` with bytes that are no UTF-8 has them
/// replaced.
void write_report_page(const ReportPage& page, const std::function<void(std::string_view)>& append);

}  // namespace attnscope
