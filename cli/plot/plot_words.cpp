#include "cli/plot/plot_words.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "core/base/error.h"
#include "core/base/selection.h"
#include "io/pictures/joined_parts.h"

namespace attnscope {
namespace {

std::string counted(size_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string steps_words(const std::set<int64_t>& steps) {
  if (steps.empty()) return "";
  const std::vector<int64_t> list(steps.begin(), steps.end());
  return fmt::format(", step{} {}", list.size() == 1 ? "" : "s", format_index_list(list, 4));
}

}  // namespace

void name_series(Chart& chart, const std::vector<std::string>& names, std::span<const size_t> which,
                 const std::string& title) {
  const bool many = names.size() > kMostNamedSeries;
  std::set<size_t> named;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    ChartSeries& series = chart.series[i];
    const size_t name = which[i];
    series.colour = name;
    if (many) {
      series.depth = static_cast<double>(name) / static_cast<double>(names.size() - 1);
    } else if (names.size() > 1 && named.insert(name).second) {
      series.name = names[name];
    }
  }
  if (many) chart.depth = {title, names.front(), names.back()};
}

std::string layer_number(const LayerHeads& layer) {
  constexpr std::string_view kWord = "layer ";
  return layer.name.starts_with(kWord) ? layer.name.substr(kWord.size()) : layer.name;
}

std::vector<ChartAxis::Name> layer_names(std::span<const LayerHeads> layers) {
  std::vector<ChartAxis::Name> names;
  for (const LayerHeads& layer : layers) {
    names.push_back({static_cast<double>(names.size()), layer_number(layer)});
  }
  return names;
}

std::string left_out_heads(size_t heads, std::string_view which) {
  return fmt::format("left out: {} {}", counted(heads, "head"), which);
}

std::string heads_words(std::span<const HeadRecord> records, std::span<const size_t> drawn) {
  std::set<int64_t> steps;
  std::set<std::string> branches;
  std::vector<HeadRecord> names;
  for (const size_t place : drawn) {
    const HeadName& name = records[place].name;
    names.push_back({name, {}, {}});
    if (!name.place.unrecorded.step) steps.insert(name.step);
    if (!name.place.unrecorded.branch) branches.insert(one_line(name.branch));
  }
  std::string text = counted(drawn.size(), "head");
  text +=
      fmt::format(" of {}{}", counted(heads_by_layer(names).size(), "layer"), steps_words(steps));
  if (branches.size() > 3) return text + fmt::format(", {} branches", branches.size());
  return branches.empty() ? text : text + fmt::format(", {}", fmt::join(branches, " and "));
}

OrderedJson step_value(const HeadName& name) {
  return name.place.unrecorded.step ? OrderedJson() : OrderedJson(name.step);
}

OrderedJson branch_value(const HeadName& name) {
  return name.place.unrecorded.branch ? OrderedJson() : OrderedJson(name.branch);
}

OrderedJson layer_value(const LayerHeads& layer) {
  return layer.layer ? OrderedJson(*layer.layer) : OrderedJson();
}

PictureText plot_text(const PlotHeads& heads, const Plot& plot, const std::string& what,
                      std::span<const size_t> drawn) {
  PictureText text;
  text.title = heads.title;
  text.lines = {what, joined_parts({heads_words(heads.records, drawn), heads.how})};
  text.lines.insert(text.lines.end(), plot.notes.begin(), plot.notes.end());
  return text;
}

}  // namespace attnscope
