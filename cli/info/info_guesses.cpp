#include "cli/info/info_guesses.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/selection.h"
#include "io/capture/named_calls.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

constexpr std::string_view kFromName = "from the file's name";
constexpr std::string_view kFromTensorName = "from the tensor's name";

/// The reason for a fact that was guessed, from its origin; empty where it was not guessed.
std::string reason_of(const std::string& fact, const CallEntry::Fact& known, const CallEntry& call,
                      const std::optional<NamedFolder>& folder) {
  const std::string& origin = known.origin;
  constexpr std::string_view kGuessed = "guessed: ";
  constexpr std::string_view kPreset = "guessed from preset ";
  if (origin.starts_with(kGuessed)) return origin.substr(kGuessed.size());
  if (origin.starts_with(kPreset)) {
    const AttentionProblem& p = *call.problem;
    return fmt::format("{} tokens of head dimension {}, as in the preset {}", p.num_queries(),
                       p.head_dim(), origin.substr(kPreset.size()));
  }
  if (origin == kFromName || origin == kFromTensorName) {
    const std::string name = origin.substr(std::string_view("from ").size());
    return folder ? name + ", as " + folder->pattern : name;
  }
  if (origin == "one file a head" || origin == "one tensor a head") return origin;
  if (origin != "default") return "";
  if (fact == "scale")
    return fmt::format("1/sqrt({}), the head dimension", call.problem->head_dim());
  if (fact == "mask" && known.json == "\"none\"") return "no mask was recorded";
  if (fact == "mask") return "a tensor mask stands beside q and k";
  return "";
}

std::string kind_reason(const AttentionProblem& p) {
  if (p.id().kind == CallKind::cross) return "queries and keys differ in number";
  return p.id().kind == CallKind::joint ? "there is a grid, and text" : "as many queries as keys";
}

}  // namespace

std::vector<Guess> guesses_of(const CallEntry& call, const std::optional<NamedFolder>& folder) {
  std::vector<Guess> guesses;
  for (const auto& [fact, known] : call.facts) {
    std::string reason = reason_of(fact, known, call, folder);
    if (!reason.empty()) guesses.push_back({fact, known.json, std::move(reason)});
  }
  if (call.facts.count("kind") == 0) {
    guesses.push_back(
        {"kind", fmt::format("\"{}\"", kind_name(call.id.kind)), kind_reason(*call.problem)});
  }
  return guesses;
}

OrderedJson guesses_json(const std::vector<Guess>& guesses) {
  OrderedJson list = OrderedJson::array();
  for (const Guess& guess : guesses) {
    list.push_back({{"fact", guess.fact},
                    {"value", OrderedJson::parse(guess.value, nullptr, false)},
                    {"from", guess.from}});
  }
  return list;
}

std::string guess_text(const Guess& guess) {
  const OrderedJson value = OrderedJson::parse(guess.value, nullptr, false);
  return fmt::format("{} {}, from: {}", guess.fact,
                     value.is_string() ? value.get<std::string>() : guess.value, guess.from);
}

std::vector<std::string> named_folder_lines(const std::optional<NamedFolder>& folder) {
  if (!folder) return {};
  const std::string noun = folder->of_tensors ? "tensor" : "file";
  std::string line = fmt::format("pattern: {}{}: {} {}{}", folder->pattern,
                                 folder->pattern_given ? "" : " (guessed; --pattern overrides)",
                                 folder->files, noun, folder->files == 1 ? "" : "s");
  const auto add = [&](const char* what, const std::vector<int64_t>& values) {
    if (!values.empty()) line += fmt::format(", {} {}", what, format_index_list(values));
  };
  add("steps", folder->steps);
  add("layers", folder->layers);
  add("heads", folder->heads);
  std::vector<std::string> lines{line};
  if (!folder->left_out.empty())
    lines.push_back("left out: " + first_names(folder->left_out, noun));
  return lines;
}

OrderedJson named_folder_json(const std::optional<NamedFolder>& folder) {
  if (!folder) return nullptr;
  return {{"pattern", folder->pattern},  {"pattern_given", folder->pattern_given},
          {"files", folder->files},      {"steps", folder->steps},
          {"layers", folder->layers},    {"heads", folder->heads},
          {"left_out", folder->left_out}};
}

}  // namespace attnscope
