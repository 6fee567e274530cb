#include "io/relabel/relabel_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "io/capture/capture_location.h"
#include "io/capture/facts/capture_catalogue.h"
#include "io/files/file_text.h"
#include "io/files/inner_path.h"
#include "io/files/json_text.h"
#include "io/relabel/label_change.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 6> kNames{"step",    "layer",   "branches",
                                            "forward", "of_step", "call"};

/// A call on its way to its new labels.
struct Labelled {
  const CallEntry* call = nullptr;
  CallLabels before, after;
};

CallLabels labels_of(const CallEntry& call) {
  CallLabels labels;
  const auto fact = [&](const char* name) {
    const auto found = call.facts.find(name);
    return found == call.facts.end() ? Json() : Json::parse(found->second.json);
  };
  if (const Json step = fact("step"); !step.is_null()) labels.step = step.get<int64_t>();
  if (const Json layer = fact("layer"); !layer.is_null()) labels.layer = layer.get<int64_t>();
  if (const Json names = fact("branches"); !names.is_null()) {
    labels.branches = names.get<std::vector<std::string>>();
  }
  labels.forward = call.id.place.forward;
  return labels;
}

/// The labels that tell calls apart, as when a capture is opened; `forward` as far as it counts.
using LabelKey = std::tuple<int64_t, int64_t, std::string, CallKind, std::string, std::string,
                            int64_t, CallForward>;

std::vector<LabelKey> keys_of(const Labelled& call, bool with_forward) {
  const ModelPlace& place = call.call->id.place;
  const bool placed = !place.block.empty();
  const CallForward forward = with_forward ? call.after.forward : CallForward{};
  std::set<std::string> branches(call.after.branches.begin(), call.after.branches.end());
  if (branches.empty()) {
    const CallForward& own = call.after.forward;
    branches.insert(own.is_stated() ? own.branch() : "all");
  }
  std::vector<LabelKey> keys;
  for (const std::string& branch : branches) {
    keys.emplace_back(call.after.step.value_or(0), placed ? kNoLayer : call.after.layer.value_or(0),
                      branch, placed ? CallKind::self : call.call->id.kind, place.block, place.slot,
                      place.chunk, forward);
  }
  return keys;
}

/// Leaves out the forwards of calls whose step and branch are told, where these tell them apart.
void drop_forwards(std::vector<Labelled>& calls) {
  const auto is_told = [](const Labelled& call) {
    return call.after.step && !call.after.branches.empty();
  };
  std::map<LabelKey, int> uses;
  for (const Labelled& call : calls) {
    if (!is_told(call)) continue;
    for (const LabelKey& key : keys_of(call, false)) ++uses[key];
  }
  for (Labelled& call : calls) {
    if (!is_told(call)) continue;
    const auto keys = keys_of(call, false);
    const bool is_alone =
        std::all_of(keys.begin(), keys.end(), [&](const LabelKey& key) { return uses[key] == 1; });
    if (is_alone) call.after.forward = {};
  }
}

std::string key_text(const LabelKey& key, const Labelled& call) {
  ModelPlace place = call.call->id.place;
  place.forward = std::get<CallForward>(key);
  place.unrecorded = {!call.after.step, !call.after.layer, false};
  return call_words(call.after.step.value_or(0), call.after.layer.value_or(kNoLayer),
                    "branch " + std::get<2>(key),
                    "kind " + std::string(kind_name(call.call->id.kind)), place, ", ");
}

void require_unique(const std::vector<Labelled>& calls) {
  std::map<LabelKey, const Labelled*> seen;
  for (const Labelled& call : calls) {
    for (const LabelKey& key : keys_of(call, true)) {
      const auto [known, fresh] = seen.emplace(key, &call);
      if (fresh) continue;
      throw usage_error(one_line(call.call->file.string()) + " and " +
                        one_line(known->second->call->file.string()) + " would both be " +
                        one_line(key_text(key, call)) + ": nothing is changed");
    }
  }
}

/// The lists `forwards` and `refused` of capture.json, while their labels change.
class LogLabels {
 public:
  explicit LogLabels(const ForwardLog& log) {
    for (const ForwardRecord& record : log.forwards) {
      CallLabels labels{record.step, {}, record.branches, {}};
      labels.forward.forward = record.forward;
      labels.forward.of_step = record.of_step.value_or(-1);
      forwards_.push_back(labels);
    }
    for (const RefusedCall& call : log.refused) {
      CallLabels labels{call.step, {}, call.branches, {}};
      labels.forward.forward = call.forward.value_or(-1);
      had_step_.push_back(call.step.has_value());
      refused_.push_back(labels);
    }
  }

  void tell_steps(LabelChange& change) {
    for (auto* list : {&forwards_, &refused_}) {
      for (CallLabels& labels : *list) change.tell_step(labels);
    }
  }
  /// `calls`: as they are by then, for forwards that capture.json does not list.
  void tell_others(LabelChange& change, const std::vector<Labelled>& calls) {
    std::map<int64_t, const CallLabels*> known;
    for (const Labelled& call : calls) known[call.after.forward.forward] = &call.after;
    for (CallLabels& labels : forwards_) {
      change.tell_others(labels, "");
      known[labels.forward.forward] = &labels;
    }
    for (size_t i = 0; i < refused_.size(); ++i) {
      CallLabels& labels = refused_[i];
      const auto forward = known.find(labels.forward.forward);
      if (labels.branches.empty() && labels.forward.is_stated() && forward != known.end()) {
        labels.branches = forward->second->branches;
      } else if (!labels.branches.empty() || !had_step_[i]) {
        // A step that was recorded does not tell the forward's place in it.
        change.tell_others(labels, "");
      }
    }
  }
  /// Writes the labels to capture.json's lists; true where an entry became another.
  bool write(OrderedJson& root) const {
    const OrderedJson before = root;
    for (const auto& [name, list] : {std::pair("forwards", &forwards_), {"refused", &refused_}}) {
      for (size_t i = 0; i < list->size(); ++i) write_entry((*list)[i], root[name][i], name);
    }
    return root != before;
  }

 private:
  static void write_entry(const CallLabels& labels, OrderedJson& entry, std::string_view list) {
    if (labels.step) entry["step"] = *labels.step;
    if (list == "forwards" && labels.forward.of_step >= 0) {
      entry["of_step"] = labels.forward.of_step;
    }
    if (labels.branches.empty()) return;
    const bool one =
        labels.branches.size() == 1 && (!entry.contains("branch") || entry["branch"].is_string());
    entry["branch"] = one ? OrderedJson(labels.branches.front()) : OrderedJson(labels.branches);
  }

  std::vector<CallLabels> forwards_, refused_;
  std::vector<bool> had_step_;  ///< of refused_
};

/// Writes what changed into a call's entry.
void write_labels(const RelabelledCall& call, OrderedJson& entry) {
  const OrderedJson before = labels_json(call.before), after = labels_json(call.after);
  for (const char* name : kNames) {
    if (!after.contains(name)) {
      entry.erase(name);
    } else if (entry.contains(name) || !before.contains(name) || before[name] != after[name]) {
      entry[name] = after[name];
    }
  }
}

/// capture.json as it becomes; nothing where there is none, or it stays.
std::optional<std::string> new_catalogue(const fs::path& folder, const LogLabels& log,
                                         const std::vector<RelabelledCall>& calls) {
  const fs::path file = folder / kCatalogueName;
  std::error_code error;
  if (!fs::exists(file, error)) return std::nullopt;
  OrderedJson root = OrderedJson::parse(read_file_text(file));
  std::map<fs::path, const RelabelledCall*> changed;
  for (const RelabelledCall& call : calls) changed[call.file.lexically_normal()] = &call;
  bool changes = log.write(root);
  for (OrderedJson& entry : root["calls"]) {
    const auto path = inner_path(folder, entry["file"].get<std::string>());
    const auto call = path ? changed.find(path->lexically_normal()) : changed.end();
    if (call == changed.end()) continue;
    const OrderedJson before = entry;
    write_labels(*call->second, entry);
    changes |= entry != before;
  }
  if (!changes) return std::nullopt;
  return json_text(root, 2) + "\n";
}

fs::path require_relabelled_folder(const Capture& capture) {
  const auto folder = capture_folder(capture.path());
  const std::string path = one_line(capture.path().string());
  if (!folder) {
    throw usage_error(path +
                      ": is one file: relabel takes a folder of calls (--as tells a fact "
                      "of a file, and convert writes it down)");
  }
  if (capture.named_folder()) {
    throw usage_error(path +
                      ": its files are told by their names, which relabel does not change "
                      "(convert makes a capture of them)");
  }
  if (capture.calls_left_out() > 0) {
    throw file_error(path, "", "is not relabelled while " + capture.warnings().front());
  }
  return folder->empty() ? fs::path(".") : *folder;
}

}  // namespace

std::string RelabelledCall::text() const {
  std::vector<std::string> parts;
  const auto number = [&](const char* name, const std::optional<int64_t>& a,
                          const std::optional<int64_t>& b) {
    if (a == b) return;
    parts.push_back(fmt::format("{} {} -> {}", name, a ? std::to_string(*a) : "-",
                                b ? std::to_string(*b) : "-"));
  };
  number("step", before.step, after.step);
  number("layer", before.layer, after.layer);
  const auto names = [](const CallLabels& labels) {
    if (!labels.branches.empty()) return fmt::format("{}", fmt::join(labels.branches, "+"));
    return labels.forward.is_stated() ? labels.forward.branch() : std::string("-");
  };
  if (names(before) != names(after)) {
    parts.push_back(fmt::format("branch {} -> {}", names(before), names(after)));
  }
  if (before.forward.is_stated() && after.forward.is_stated() && after.step &&
      !after.branches.empty()) {
    parts.emplace_back("forward kept, which alone tells it apart");
  }
  if (parts.empty()) parts.emplace_back("forward left out");
  return one_line(fmt::format("{}", fmt::join(parts, ", ")));
}

RelabelPlan plan_relabel(const Capture& capture, const RelabelRules& rules) {
  const fs::path folder = require_relabelled_folder(capture);
  std::vector<Labelled> calls;
  for (const CallEntry& call : capture.calls()) {
    const CallLabels labels = labels_of(call);
    calls.push_back({&call, labels, labels});
  }
  LabelChange change(rules);
  LogLabels log(capture.log());
  log.tell_steps(change);
  for (Labelled& call : calls) change.tell_step(call.after);
  for (Labelled& call : calls) change.tell_others(call.after, call.call->id.place.block);
  log.tell_others(change, calls);
  change.require_found();
  drop_forwards(calls);
  require_unique(calls);
  RelabelPlan plan;
  for (const Labelled& call : calls) {
    if (call.before != call.after) plan.calls.push_back({call.call->file, call.before, call.after});
  }
  plan.catalogue = new_catalogue(folder, log, plan.calls);
  return plan;
}

}  // namespace attnscope
