#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/report/report_work.h"

namespace attnscope {

/// What the section may cost of a sampled report: a few seconds on two cores.
inline constexpr double kWordsFlops = 1.2e11;
/// Heads that it averages, at most.
inline constexpr int kMostWordHeads = 8;

/// The section `words`: for each word of the prompt how much the tokens of the video give to it,
/// over their grid, as the mean over the heads that look at the text most. Its arrays are uint8
/// [T, H, W] of the section's `grid`: 0 where the weight is 0 or all heads mask the query, else
/// 1 + 254·w/high, rounded.
/// Nothing where there is none of it: then `lacks` gets a line that says why. With `work.sample`
/// no more than `flops` are spent: fewer heads, then fewer rows and columns of the grid. Throws
/// Error(interrupted), and what reading the capture throws.
std::optional<ReportSection> words_section(ReportWork& work, std::vector<std::string>& lacks,
                                           double flops = kWordsFlops);

/// The heads, rows and columns of the grid whose words are computed. A value.
struct WordsPlan {
  size_t heads = 0;
  int64_t stride = 1;  ///< every such row and column of a frame
};
/// Of so many heads, each with `head_flops`, within `flops`: as many heads as fit, but at least two
/// where there are two; then the smallest stride that fits, of a frame of `height` × `width`.
WordsPlan plan_words(size_t heads, double head_flops, int64_t height, int64_t width, double flops);

}  // namespace attnscope
