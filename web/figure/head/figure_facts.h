#pragma once

#include <string>

#include "io/capture/call/call_entry.h"
#include "io/files/json_types.h"
#include "web/figure/figure_page.h"
#include "web/figure/head/figure_map.h"
#include "web/figure/head/figure_start.h"

namespace attnscope {

/// Whose page it is, and how it was made. Texts may hold anything.
struct FigureSource {
  const CallEntry& call;
  std::string title;
  std::string command;  ///< with names of files alone: a page is sent to others
  std::string backend;  ///< that computed the row sums
  FigureStart start = {};
  PageStyle style = PageStyle::reader;
};

/// All that the page's script has to know beside the arrays.
OrderedJson figure_facts(const FigureSource& source, const FigureCut& cut, const FigureMap& map);

}  // namespace attnscope
