#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/figure/figure_map.h"
#include "io/capture/capture.h"

namespace attnscope {

/// Whose page it is.
struct FigureSource {
  const Capture& capture;
  const CallEntry& call;
  std::string backend;  ///< that computed the row sums
};

/// The command that makes this page, with names of files alone: a page is sent to others.
std::string figure_command(const FigureRequest& request, const FigureSource& source,
                           const FigureCut& cut);
/// "CogVideoX-2b, step 0 layer 12 cond joint batch 0 head 3".
std::string figure_title(const FigureSource& source, const FigureCut& cut);
/// All that the page's script has to know beside the arrays.
nlohmann::ordered_json figure_facts(const FigureRequest& request, const FigureSource& source,
                                    const FigureCut& cut, const FigureMap& map);

}  // namespace attnscope
