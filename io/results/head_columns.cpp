#include "io/results/head_columns.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "io/results/csv_line.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

constexpr std::string_view kTitles[] = {"step",  "layer", "branch", "kind",    "batch",   "head",
                                        "block", "slot",  "chunk",  "forward", "of_step", "call"};
constexpr size_t kAlways = 6;

}  // namespace

bool names_head(std::string_view title) {
  return std::find(std::begin(kTitles), std::end(kTitles), title) != std::end(kTitles);
}

HeadColumns::HeadColumns() : there_(std::size(kTitles)) {
  std::fill_n(there_.begin(), kAlways, true);
}

void HeadColumns::add(std::string_view title) {
  there_[static_cast<size_t>(std::find(std::begin(kTitles), std::end(kTitles), title) -
                             std::begin(kTitles))] = true;
}

void HeadColumns::add(const HeadName& name) {
  const OrderedJson stated = name_json(name);
  for (const auto& [title, value] : stated.items()) {
    if (!value.is_null()) add(title);
  }
}

std::vector<std::string> HeadColumns::titles() const {
  std::vector<std::string> titles;
  for (size_t i = 0; i < there_.size(); ++i) {
    if (there_[i]) titles.emplace_back(kTitles[i]);
  }
  return titles;
}

std::vector<std::string> HeadColumns::fields(const HeadName& name) const {
  const OrderedJson json = name_json(name);
  std::vector<std::string> fields;
  for (const std::string& title : titles()) {
    const auto value = json.find(title);
    fields.push_back(value == json.end() ? "" : csv_value(*value));
  }
  return fields;
}

}  // namespace attnscope
