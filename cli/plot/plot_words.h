#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/plot/plot.h"

namespace attnscope {

/// Series that are told apart by colours alone; more of them have a colour bar.
inline constexpr size_t kMostNamedSeries = 7;

/// Gives series of these names, in their order, colours and a legend; very many a colour bar of
/// this title. `which`: the name that each series is of.
void name_series(Chart& chart, const std::vector<std::string>& names, std::span<const size_t> which,
                 const std::string& title);

/// "3" of "layer 3": a name where "layer" stands beside it.
std::string layer_number(const LayerHeads& layer);
/// The layers as names of the x axis, at 0, 1, 2 …
std::vector<ChartAxis::Name> layer_names(std::span<const LayerHeads> layers);

/// "16 heads of 4 layers, step 10, cond": of records that are drawn.
std::string heads_words(std::span<const HeadRecord> records, std::span<const size_t> drawn);

/// "left out: 2 heads WHICH", a note.
std::string left_out_heads(size_t heads, std::string_view which);
/// Which heads have neither entropy nor a curve of keys.
inline constexpr std::string_view kWithoutShares =
    "whose weights are no shares of a row, or whose rows are all masked";

/// Step, branch, layer and so on as --data has them: null where nobody recorded them.
OrderedJson step_value(const HeadName& name);
OrderedJson branch_value(const HeadName& name);
OrderedJson layer_value(const LayerHeads& layer);

/// The title and the lines of a plot: `what` it shows, of which heads, how they were measured and
/// what is left out.
PictureText plot_text(const PlotHeads& heads, const Plot& plot, const std::string& what,
                      std::span<const size_t> drawn);

}  // namespace attnscope
