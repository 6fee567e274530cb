#include "python/native/opened_capture.h"

#include <optional>
#include <sstream>
#include <stop_token>
#include <utility>

#include "cli/common/console.h"
#include "cli/common/head_list.h"
#include "cli/common/unknown_state.h"
#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/heads/head_condition.h"
#include "io/capture/computable.h"
#include "io/check/self_check.h"

namespace attnscope {
namespace {

using Words = std::map<std::string, std::string>;

/// Puts each word's value where `places` say.
void take_words(const Words& words, const std::map<std::string, std::string*>& places) {
  for (const auto& [name, value] : words) {
    const auto place = places.find(name);
    if (place != places.end()) {
      *place->second = value;
      continue;
    }
    std::vector<std::string> known;
    for (const auto& [other, unused] : places) known.push_back(other);
    const std::string nearest = nearest_word(name, known);
    throw usage_error("unknown option " + one_line(name) +
                      (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
  }
}

/// The prefix of keys that stand for --as: "as NAME".
constexpr std::string_view kTold = "as ";
/// The prefix of keys that stand for --ignore: "ignore NAME".
constexpr std::string_view kIgnore = "ignore ";

CaptureOptions capture_options(Words words, std::string& check) {
  CaptureOptions o;
  std::erase_if(words, [&](const auto& each) {
    if (each.first.starts_with(kIgnore)) {
      o.told.push_back(each.first.substr(kIgnore.size()) + "=none");
      return true;
    }
    if (!each.first.starts_with(kTold)) return false;
    o.told.push_back(each.first.substr(kTold.size()) + "=" + each.second);
    return true;
  });
  std::map<std::string, std::string*> places{
      {"capture", &o.capture}, {"q", &o.tensors.q}, {"k", &o.tensors.k}, {"v", &o.tensors.v},
      {"score", &o.score},     {"links", &o.links}, {"check", &check}};
  std::map<std::string, std::string> texts;
  for (const TextFact& fact : kTextFacts) places[fact.name] = &texts[fact.name];
  take_words(words, places);
  for (const TextFact& fact : kTextFacts) {
    if (!texts[fact.name].empty()) o.texts.*fact.value = texts[fact.name];
  }
  return o;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream words(text);
  for (std::string part; std::getline(words, part, ',');) parts.push_back(part);
  return parts;
}

}  // namespace

OpenedCapture open_watched(const Words& words, const Engine& engine, RunWatch& watch) {
  std::string check = "yes";
  const CaptureOptions o = capture_options(words, check);
  const Console console(true);
  const std::stop_callback stops(watch.stop(),
                                 [source = console.stop()]() mutable { source.request_stop(); });
  OpenedCapture opened{std::make_shared<const Capture>(read_capture(o, engine.options(), console)),
                       {},
                       o.texts.preset.value_or("")};
  const Capture& capture = *opened.capture;
  require_computable(capture);
  opened.warnings = capture.warnings();
  const std::string unknown = not_understood_text(capture);
  if (!unknown.empty())
    opened.warnings.push_back(one_line(capture.path().string()) + ": " + unknown);
  const std::string state = unknown_state_text(capture.select(parse_selection({})));
  if (!state.empty()) {
    opened.warnings.push_back(one_line(capture.path().string()) + ": " + state);
  }
  if (check == "no" || o.texts.mask || o.score != "softmax") return opened;
  MemoryBudget budget(memory_beside(capture, engine.options()));
  if (const auto differs = quick_check(capture, {engine.backend(), budget}, watch.stop())) {
    opened.warnings.push_back(one_line(capture.path().string()) + ": " +
                              quick_check_warning(*differs));
  }
  return opened;
}

SelectionOptions selection_of_words(const Words& words) {
  SelectionOptions o;
  std::string branch, kind, blocks, slots, pick, where;
  take_words(words, {{"steps", &o.steps},
                     {"layers", &o.layers},
                     {"heads", &o.heads},
                     {"batch", &o.batch},
                     {"chunks", &o.chunks},
                     {"branch", &branch},
                     {"kind", &kind},
                     {"blocks", &blocks},
                     {"slots", &slots},
                     {"pick", &pick},
                     {"from", &o.from},
                     {"where", &where},
                     {"cache", &o.cache}});
  o.branches = split(branch);
  o.kinds = split(kind);
  o.blocks = split(blocks);
  o.slots = split(slots);
  o.pick = split(pick);
  if (words.count("where") != 0) {
    HeadCondition::parse(where, "where");
    o.where = where;
  }
  if (!o.from.empty()) o.listed = read_head_list(o.from);
  return o;
}

}  // namespace attnscope
