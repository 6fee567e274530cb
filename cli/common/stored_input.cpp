#include "cli/common/stored_input.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/heads/head_condition.h"

namespace attnscope {
std::string capture_option_given(const CaptureOptions& c, const RunOptions& run) {
  const std::pair<const char*, bool> facts[] = {{"--q", !c.tensors.q.empty()},
                                                {"--k", !c.tensors.k.empty()},
                                                {"--v", !c.tensors.v.empty()},
                                                {"--score", c.score != "softmax"},
                                                {"--as", !c.told.empty()},
                                                {"--links", c.links != "refuse"},
                                                {"--backend", run.backend != "auto"},
                                                {"--vram", !run.vram.empty()},
                                                {"--tf32", run.tf32},
                                                {"--profile", run.profile},
                                                {"--threads", run.threads > 0}};
  for (const TextFact& fact : kTextFacts) {
    if (c.texts.*fact.value) return fact.option;
  }
  for (const auto& [option, given] : facts) {
    if (given) return option;
  }
  return "";
}

void check_export_options(const CaptureOptions& c, const RunOptions& run) {
  const std::string option = capture_option_given(c, run);
  if (option.empty()) return;
  throw usage_error(fmt::format(
      "{}: {} is an export, whose maps are computed already (the option belongs to captures)",
      option, one_line(c.capture)));
}

std::vector<size_t> select_stored(const std::vector<HeadName>& heads,
                                  const SelectionOptions& options, const Console& console) {
  HeadChoice choice(parse_selection(options), "the export");
  for (const HeadName& head : heads) choice.add(head);
  choice.resolve();
  std::vector<size_t> selected;
  for (size_t i = 0; i < heads.size(); ++i) {
    if (choice.takes(heads[i])) selected.push_back(i);
  }
  if (selected.empty()) throw choice.nothing_left();
  for (const std::string& line : choice.missing()) console.warn("warning: " + line);
  return selected;
}

HeadName stored_name(const StoredFacts& facts, int64_t batch, int64_t head) {
  return {facts.step, facts.layer, facts.branch, facts.kind, batch, head, facts.place};
}

std::vector<StoredHead> select_stored(const StoredMaps& maps, const SelectionOptions& options,
                                      const Console& console) {
  std::vector<HeadName> names;
  for (const StoredHead& h : maps.heads()) {
    names.push_back(stored_name(*h.facts, h.batch, h.head));
  }
  std::vector<StoredHead> selected;
  for (const size_t i : select_stored(names, options, console)) selected.push_back(maps.heads()[i]);
  return selected;
}

std::string stored_label(const StoredHead& h) {
  return head_label(stored_name(*h.facts, h.batch, h.head));
}

void settle_where_of_table(SelectionOptions& selection, const NumberTable& table) {
  if (!asks_for_numbers(selection)) return;
  if (table.runs.size() > 1) {
    throw usage_error(fmt::format("--where: {} has the numbers of {} runs, and no head has one",
                                  one_line(table.name), table.runs.size()));
  }
  const HeadCondition condition = HeadCondition::parse(*selection.where, "--where");
  const auto column = [&](const HeadField& field) {
    return std::find(table.metrics.begin(), table.metrics.end(), field.name);
  };
  for (const HeadField* field : condition.fields()) {
    if (column(*field) != table.metrics.end()) continue;
    throw usage_error(
        fmt::format("--where: {} is none of the numbers that tables are read for ({})", field->name,
                    one_line(table.name)));
  }
  auto holding = std::make_shared<std::set<HeadName>>();
  for (const NumberTable::Line& line : table.lines) {
    const ConditionedHead head{
        line.head, parse_head_class(line.head_class),
        [&](const HeadField& field) -> std::optional<double> {
          return line.values[static_cast<size_t>(column(field) - table.metrics.begin())];
        }};
    if (condition.holds(head)) holding->insert(line.head);
  }
  selection.holding = std::move(holding);
}

}  // namespace attnscope
