#pragma once

#include <filesystem>
#include <string>

#include "cli/figure/figure_options.h"
#include "io/capture/capture.h"
#include "web/figure/head/figure_cut.h"

namespace attnscope {

/// The command that makes this page, with names of files alone: a page is sent to others.
std::string figure_command(const FigureRequest& request, const std::filesystem::path& capture,
                           const CallEntry& call, const FigureCut& cut);
/// "CogVideoX-2b, step 0 layer 12 cond joint batch 0 head 3".
std::string figure_title(const std::filesystem::path& capture, const CallEntry& call,
                         const FigureCut& cut);

}  // namespace attnscope
