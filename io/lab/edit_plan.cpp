#include "io/lab/edit_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/base/version.h"
#include "core/problem/attention_problem.h"
#include "io/files/file_text.h"
#include "io/files/json_text.h"
#include "io/files/json_types.h"
#include "io/files/strict_json.h"
#include "io/lab/edit_target.h"

namespace attnscope {
namespace {

constexpr const char* kEditsFormat = "attnscope-edits/1";
constexpr const char* kEditsNote =
    "Numbers are of one attention call on recorded inputs: a proxy, which does not tell which of "
    "two edits gives the better pictures.";
constexpr int64_t kMostPlanBytes = int64_t{256} << 20;

template <typename Value>
OrderedJson or_null(const std::optional<Value>& value) {
  return value ? OrderedJson(*value) : OrderedJson();
}

OrderedJson word_or_null(const std::string& word) {
  return word.empty() ? OrderedJson() : OrderedJson(word);
}

OrderedJson kept_json(const TargetNumbers& kept) {
  return {{"mean", kept.mean}, {"worst", kept.worst}, {"forwards", kept.forwards}};
}

OrderedJson scope_json(const PlanScope& scope) {
  return {{"steps", or_null(scope.steps)},
          {"layers", or_null(scope.layers)},
          {"kind", scope.kind},
          {"block", word_or_null(scope.block)},
          {"slot", word_or_null(scope.slot)},
          {"heads", or_null(scope.heads)},
          {"edit", scope.edit},
          {"tiles", scope.tiles},
          {"promised", kept_json(scope.promised)},
          {"found", scope.found ? kept_json(*scope.found) : OrderedJson()},
          {"queries", scope.queries},
          {"keys", scope.keys}};
}

/// Reads a plan's JSON; all that is not as the format has it is Error(file).
class EditPlanReader {
 public:
  EditPlanReader(const Json& json, const std::string& file) : json_(json), file_(file) {}

  EditPlan read() const {
    if (!json_.is_object()) fail("", "an object, as attnscope writes plans", json_);
    const Json format = json_.value("format", Json());
    if (format != kEditsFormat) fail("format", fmt::format("\"{}\"", kEditsFormat), format);
    only(json_, "",
         {"format", "attnscope_version", "capture", "capture_hash", "target", "among", "hold_out",
          "note", "scopes"});
    EditPlan plan;
    word(json_, "", "attnscope_version");
    plan.capture = word(json_, "", "capture");
    plan.capture_hash = word(json_, "", "capture_hash");
    plan.target = word(json_, "", "target");
    plan.hold_out = whole(member(json_, "", "hold_out"), "hold_out", 0);
    try {
      parse_target(plan.target, "target");
    } catch (const Error& error) {
      throw file_error(file_, "target", error.what());
    }
    const Json& among = list(json_, "", "among");
    for (size_t i = 0; i < among.size(); ++i) {
      const std::string place = fmt::format("among[{}]", i);
      if (!among[i].is_string() || among[i] == "") fail(place, "an edit", among[i]);
      plan.among.push_back(among[i]);
    }
    const Json& scopes = list(json_, "", "scopes");
    for (size_t i = 0; i < scopes.size(); ++i) {
      plan.scopes.push_back(scope(scopes[i], fmt::format("scopes[{}]", i), plan));
    }
    return plan;
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& expected,
                         const Json& got) const {
    std::string found = got.is_null() ? "null or nothing" : json_text(OrderedJson(got));
    constexpr size_t kShown = 80;
    if (found.size() > kShown) found = found.substr(0, kShown) + "...";
    throw file_error(file_, place, fmt::format("expected {}, got {}", expected, one_line(found)));
  }

  static std::string below(const std::string& place, const std::string& name) {
    return place.empty() ? name : place + "." + name;
  }

  void only(const Json& object, const std::string& place,
            const std::vector<std::string>& names) const {
    if (!object.is_object()) fail(place, "an object", object);
    for (const auto& [name, value] : object.items()) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      const std::string nearest = nearest_word(name, names);
      throw file_error(file_, below(place, one_line(name)),
                       "is no member of this format" +
                           (nearest.empty() ? "" : ", did you mean " + nearest + "?"));
    }
  }

  const Json& member(const Json& object, const std::string& place, const char* name) const {
    const auto found = object.find(name);
    if (found == object.end()) throw file_error(file_, below(place, name), "is missing");
    return *found;
  }

  const Json& list(const Json& object, const std::string& place, const char* name) const {
    const Json& found = member(object, place, name);
    if (!found.is_array()) fail(below(place, name), "a list", found);
    return found;
  }

  std::string word(const Json& object, const std::string& place, const char* name) const {
    const Json& found = member(object, place, name);
    if (!found.is_string()) fail(below(place, name), "a text", found);
    return found;
  }

  std::string word_or_none(const Json& object, const std::string& place, const char* name) const {
    return member(object, place, name).is_null() ? "" : word(object, place, name);
  }

  int64_t whole(const Json& json, const std::string& place, int64_t least) const {
    const bool fits =
        json.is_number_integer() &&
        (!json.is_number_unsigned() ||
         json.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
    if (!fits || json.get<int64_t>() < least) {
      fail(place, fmt::format("a whole number, at least {}", least), json);
    }
    return json.get<int64_t>();
  }

  double number(const Json& object, const std::string& place, const char* name, double most) const {
    const Json& found = member(object, place, name);
    if (!found.is_number() || !(found >= 0) || !(found <= most)) {
      const bool limited = most < std::numeric_limits<double>::max();
      fail(below(place, name),
           limited ? fmt::format("a number from 0 to {}", most) : "a number, at least 0", found);
    }
    return found;
  }

  /// Ascending numbers, at least one; nothing where there is null.
  std::optional<std::vector<int64_t>> numbers(const Json& object, const std::string& place,
                                              const char* name) const {
    const Json& found = member(object, place, name);
    if (found.is_null()) return std::nullopt;
    const std::string here = below(place, name);
    if (!found.is_array() || found.empty()) fail(here, "null or a list of numbers", found);
    std::vector<int64_t> values;
    for (const Json& each : found) {
      values.push_back(whole(each, here, 0));
      if (values.size() > 1 && values.back() <= values[values.size() - 2]) {
        fail(here, "ascending numbers", found);
      }
    }
    return values;
  }

  TargetNumbers kept(const Json& json, const std::string& place) const {
    only(json, place, {"mean", "worst", "forwards"});
    constexpr double kAny = std::numeric_limits<double>::max();
    return {number(json, place, "mean", kAny), number(json, place, "worst", kAny),
            whole(member(json, place, "forwards"), place + ".forwards", 1)};
  }

  PlanScope scope(const Json& json, const std::string& place, const EditPlan& plan) const {
    only(json, place,
         {"steps", "layers", "kind", "block", "slot", "heads", "edit", "tiles", "promised", "found",
          "queries", "keys"});
    PlanScope scope;
    if (const Json& steps = member(json, place, "steps"); !steps.is_null()) {
      const std::string here = place + ".steps";
      if (!steps.is_array() || steps.size() != 2) fail(here, "null or [first, last]", steps);
      scope.steps = {whole(steps[0], here, 0), whole(steps[1], here, 0)};
      if (scope.steps->front() > scope.steps->back()) fail(here, "the first step first", steps);
    }
    scope.layers = numbers(json, place, "layers");
    scope.kind = word(json, place, "kind");
    if (!parse_kind(scope.kind)) fail(place + ".kind", "self, cross or joint", json["kind"]);
    scope.block = word_or_none(json, place, "block");
    scope.slot = word_or_none(json, place, "slot");
    scope.heads = numbers(json, place, "heads");
    scope.edit = word(json, place, "edit");
    const auto& among = plan.among;
    if (scope.edit != kDenseEdit &&
        std::find(among.begin(), among.end(), scope.edit) == among.end()) {
      fail(place + ".edit", "dense or one of \"among\"", json["edit"]);
    }
    scope.tiles = number(json, place, "tiles", 1);
    scope.promised = kept(member(json, place, "promised"), place + ".promised");
    const Json& found = member(json, place, "found");
    if (!found.is_null()) scope.found = kept(found, place + ".found");
    scope.queries = whole(member(json, place, "queries"), place + ".queries", 1);
    scope.keys = whole(member(json, place, "keys"), place + ".keys", 1);
    return scope;
  }

  const Json& json_;
  const std::string& file_;
};

bool has(const std::optional<std::vector<int64_t>>& list, int64_t number) {
  return !list || std::find(list->begin(), list->end(), number) != list->end();
}

/// " layer 3", " layers 3, 4"; empty for all.
std::string listed(const char* name, const std::optional<std::vector<int64_t>>& numbers) {
  std::string text;
  if (!numbers) return text;
  for (const int64_t number : *numbers)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", number);
  return fmt::format(" {}{} {}", name, numbers->size() > 1 ? "s" : "", text);
}

}  // namespace

bool PlanScope::holds(const HeadName& head) const {
  return (!steps || (steps->front() <= head.step && head.step <= steps->back())) &&
         has(layers, head.layer) && kind == head.kind && has(heads, head.head) &&
         (block.empty() || block == head.place.block) && (slot.empty() || slot == head.place.slot);
}

std::string PlanScope::describe() const {
  std::string text;
  if (steps) text = fmt::format(" steps {}-{}", steps->front(), steps->back());
  text += listed("layer", layers);
  for (const std::string* word : {&block, &slot, &kind}) {
    if (!word->empty()) text += " " + *word;
  }
  return (text + listed("head", heads)).substr(1);
}

std::string edit_plan_text(const EditPlan& plan) {
  OrderedJson json{{"format", kEditsFormat},    {"attnscope_version", version()},
                   {"capture", plan.capture},   {"capture_hash", plan.capture_hash},
                   {"target", plan.target},     {"among", plan.among},
                   {"hold_out", plan.hold_out}, {"note", kEditsNote}};
  // A scope a line.
  std::string text = json_text(json, 1);
  text.replace(text.size() - 2, 2, ",\n \"scopes\": [");
  for (const PlanScope& scope : plan.scopes) {
    text += (text.back() == '[' ? "\n  " : ",\n  ") + json_text(scope_json(scope));
  }
  return text + "\n ]\n}\n";
}

EditPlan parse_edit_plan(std::string_view text, const std::string& file) {
  const Json json = parse_strict_json(text, file, "");
  return EditPlanReader(json, file).read();
}

EditPlan read_edit_plan(const std::filesystem::path& path) {
  const std::string file = path.string();
  return parse_edit_plan(read_file_text(file, "a plan of edits", kMostPlanBytes), file);
}

const PlanScope* scope_of(const EditPlan& plan, const HeadName& head) {
  const auto found = std::find_if(plan.scopes.begin(), plan.scopes.end(),
                                  [&](const PlanScope& scope) { return scope.holds(head); });
  return found == plan.scopes.end() ? nullptr : &*found;
}

void check_shapes(const EditPlan& plan, const HeadName& head, int64_t queries, int64_t keys,
                  std::string_view name) {
  const PlanScope* scope = scope_of(plan, head);
  if (scope == nullptr || scope->edit == kDenseEdit) return;
  if (scope->queries == queries && scope->keys == keys) return;
  throw usage_error(fmt::format(
      "{}: scopes[{}] ({}): was chosen for {} queries and {} keys, but {} has {} and {}: choose "
      "anew from a capture of this size",
      name, scope - plan.scopes.data(), scope->describe(), scope->queries, scope->keys,
      head_words(head), queries, keys));
}

}  // namespace attnscope
