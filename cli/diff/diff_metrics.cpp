#include "cli/diff/diff_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/head_table.h"
#include "cli/common/run_steps.h"
#include "cli/common/stored_input.h"
#include "cli/diff/diff_report.h"
#include "core/base/error.h"
#include "core/reduce/head_fields.h"
#include "io/capture/facts/call_facts.h"
#include "io/files/output_file.h"
#include "io/metrics/metric_file.h"
#include "io/metrics/metric_journal.h"
#include "io/metrics/run_summary.h"
#include "io/results/head_json.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;

Json json_number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

std::vector<std::string> number_names() {
  std::vector<std::string> names;
  for (const std::string_view name : metric_names()) names.emplace_back(name);
  return names;
}

std::vector<HeadOverRuns> read_heads(const std::string& path) {
  const RunTable table = is_metric_journal(path) ? read_metric_journal(path)
                                                 : read_metric_file(path, MetricPart::everything);
  return heads_over_runs(table, number_names(), one_line(path));
}

std::vector<HeadOverRuns> selected_heads(const std::vector<HeadOverRuns>& all,
                                         const SelectionOptions& selection) {
  std::vector<HeadName> names;
  for (const HeadOverRuns& head : all) names.push_back(head.name);
  std::vector<HeadOverRuns> heads;
  for (const size_t i : select_stored(names, selection)) heads.push_back(all[i]);
  return heads;
}

int64_t other_number(const std::string& text, const char* option) {
  const auto value = parse_number(text);
  if (value && *value == std::floor(*value) && std::abs(*value) < 1e15) {
    return static_cast<int64_t>(*value);
  }
  throw usage_error(fmt::format("{} {}: expected a whole number", option, one_line(text)));
}

/// The head's name with what side B has in its place.
HeadName other_name(HeadName name, const OtherValues& other) {
  const auto number = [](const std::string& text, const char* option, int64_t& value) {
    if (!text.empty()) value = other_number(text, option);
  };
  number(other.step, "--b-step", name.step);
  number(other.layer, "--b-layer", name.layer);
  number(other.head, "--b-head", name.head);
  number(other.batch, "--b-batch", name.batch);
  number(other.chunk, "--b-chunk", name.place.chunk);
  if (!other.branch.empty()) name.branch = other.branch;
  if (!other.block.empty()) name.place.block = other.block;
  if (!other.slot.empty()) name.place.slot = other.slot;
  return name;
}

// ---- one table

Json summary_json(const HeadOverRuns& head) {
  Json json = name_json(head.name);
  json["class"] = head.head_class;
  json["class_share"] = head.class_share;
  json["runs"] = head.runs;
  const std::vector<std::string> names = number_names();
  for (size_t i = 0; i < names.size(); ++i) {
    const NumberSpread spread = spread_of(head.values[i]);
    json[names[i] + "_mean"] = json_number(spread.mean);
    json[names[i] + "_std"] = json_number(spread.deviation);
    json[names[i] + "_ci95"] = json_number(spread.half95);
  }
  return json;
}

Json changes_json(const std::vector<ClassChange>& changes) {
  Json list = Json::array();
  for (const ClassChange& change : changes) {
    Json json = name_json(change.name);
    json["before_step"] = change.before_step;
    json["before"] = change.before;
    json["after"] = change.after;
    list.push_back(std::move(json));
  }
  return list;
}

std::string spread_text(double value, double half) {
  if (std::isnan(value)) return fmt::format("{:>18}", "-");
  if (std::isnan(half)) return fmt::format("{:>18.4g}", value);
  return fmt::format("{:>9.4g} ±{:>7.2g}", value, half);
}

/// The numbers that stand in a line for people.
constexpr const char* kShown[] = {"entropy", "text_mass", "same_frame_mass", "same_position_mass",
                                  "sink_mass"};

size_t place_of(const std::string& number) {
  const std::vector<std::string> names = number_names();
  return static_cast<size_t>(std::find(names.begin(), names.end(), number) - names.begin());
}

void print_summaries(const std::vector<HeadOverRuns>& heads,
                     const std::vector<ClassChange>& changes) {
  std::string line = fmt::format("{:<44} {:<9} {:>5} {:>5}", "head", "class", "share", "runs");
  for (const char* name : kShown) line += fmt::format(" {:>18}", name);
  fmt::print("{}\n", line);
  for (const HeadOverRuns& head : heads) {
    line = fmt::format("{:<44} {:<9} {:5.2f} {:5}", head_label(head.name), head.head_class,
                       head.class_share, head.runs);
    for (const char* name : kShown) {
      const NumberSpread spread = spread_of(head.values[place_of(name)]);
      line += " " + spread_text(spread.mean, spread.half95);
    }
    fmt::print("{}\n", line);
  }
  for (const ClassChange& change : changes) {
    fmt::print("{}: {} (at step {} {})\n", head_label(change.name), change.after,
               change.before_step, change.before);
  }
}

// ---- two

/// A head of A and the one of B that it is held against.
struct RunPair {
  const HeadOverRuns *a = nullptr, *b = nullptr;
};

std::vector<RunPair> run_pairs(const std::vector<HeadOverRuns>& a,
                               const std::vector<HeadOverRuns>& b, const OtherValues& other,
                               const std::string& b_path) {
  std::map<HeadName, const HeadOverRuns*> by_name;
  for (const HeadOverRuns& head : b) by_name[head.name] = &head;
  std::vector<RunPair> pairs;
  for (const HeadOverRuns& head : a) {
    const HeadName name = other_name(head.name, other);
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      throw usage_error(fmt::format("{}: has no {} (for {})", one_line(b_path), head_label(name),
                                    head_label(head.name)));
    }
    pairs.push_back({&head, found->second});
  }
  return pairs;
}

Json pair_difference(const RunPair& pair, bool paired) {
  Json json{{"a", name_json(pair.a->name)},  {"b", name_json(pair.b->name)},
            {"a_class", pair.a->head_class}, {"b_class", pair.b->head_class},
            {"a_runs", pair.a->runs},        {"b_runs", pair.b->runs}};
  const std::vector<std::string> names = number_names();
  for (size_t i = 0; i < names.size(); ++i) {
    const NumberDifference d = difference_of(pair.a->values[i], pair.b->values[i], paired);
    json[names[i] + "_a"] = json_number(d.a.mean);
    json[names[i] + "_b"] = json_number(d.b.mean);
    json[names[i] + "_difference"] = json_number(d.difference);
    json[names[i] + "_ci95"] = json_number(d.half95);
  }
  return json;
}

void print_pairs(const std::vector<RunPair>& pairs, bool paired) {
  std::string line = fmt::format("{:<44} {:<19}", "head (A - B)", "class");
  for (const char* name : kShown) line += fmt::format(" {:>19}", name);
  fmt::print("{}\n", line);
  for (const RunPair& pair : pairs) {
    const bool same = pair.a->head_class == pair.b->head_class;
    line = fmt::format("{:<44} {:<19}", head_label(pair.a->name),
                       same ? pair.a->head_class : pair.a->head_class + " - " + pair.b->head_class);
    for (const char* name : kShown) {
      const size_t i = place_of(name);
      const NumberDifference d = difference_of(pair.a->values[i], pair.b->values[i], paired);
      line += " " + spread_text(d.difference, d.half95) + (d.is_clear() ? "*" : " ");
    }
    fmt::print("{}\n", line);
  }
  fmt::print("*: further from 0 than half of its 95 % interval\n");
}

}  // namespace

int diff_metrics(const MetricDiffRequest& o) {
  const Console console(o.quiet);
  std::vector<std::filesystem::path> inputs{o.a};
  if (!o.b.empty()) inputs.emplace_back(o.b);
  if (!o.out.empty()) {
    check_diff_name(o.out);
    OutputFile::check_target(o.out, {.force = o.force, .inputs = inputs});
  }
  const std::vector<HeadOverRuns> all = read_heads(o.a);
  const std::vector<HeadOverRuns> heads = selected_heads(all, o.selection);
  const bool is_pair = !o.b.empty() || o.other.any();
  Json json{{"format", "attnscope-diff-metrics/1"}, {"a", o.a}};
  if (!is_pair) {
    const std::vector<ClassChange> changes = class_changes(heads);
    for (const HeadOverRuns& head : heads) json["heads"].push_back(summary_json(head));
    json["class_changes"] = changes_json(changes);
    if (!o.out.empty()) write_diff(json, o.out, o.force, {"heads", "entry"});
    print_result(
        o.json, !o.out.empty(), [&] { return json; }, [&] { print_summaries(heads, changes); });
  } else {
    const bool paired = o.b.empty();
    const std::vector<HeadOverRuns> others = paired ? all : read_heads(o.b);
    const std::vector<RunPair> pairs = run_pairs(heads, others, o.other, paired ? o.a : o.b);
    json["b"] = paired ? o.a : o.b;
    json["paired"] = paired;
    for (const RunPair& pair : pairs) json["pairs"].push_back(pair_difference(pair, paired));
    if (!o.out.empty()) write_diff(json, o.out, o.force);
    print_result(
        o.json, !o.out.empty(), [&] { return json; }, [&] { print_pairs(pairs, paired); });
  }
  if (!o.out.empty()) console.say("wrote " + o.out);
  return kExitOk;
}

}  // namespace attnscope
