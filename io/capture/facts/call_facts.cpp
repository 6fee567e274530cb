#include "io/capture/facts/call_facts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <sstream>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "io/files/strict_json.h"
#include "io/files/utf8.h"

namespace attnscope {
namespace {

enum class FactType : uint8_t { text, integer, number, strings, integers, token_lists, any };

struct FactName {
  std::string_view name;
  FactType type;
  /// The option that tells it; empty: none does.
  std::string_view option = "--as";
};

constexpr std::array<FactName, 29> kFacts{{{"format", FactType::text, ""},
                                           {"model", FactType::text},
                                           {"prompt", FactType::text},
                                           {"step", FactType::integer},
                                           {"timestep", FactType::number},
                                           {"layer", FactType::integer},
                                           {"layer_name", FactType::text},
                                           {"kind", FactType::text},
                                           {"branches", FactType::strings},
                                           {"layout", FactType::text, "--layout"},
                                           {"scale", FactType::number, "--scale"},
                                           {"mask", FactType::text, "--mask"},
                                           {"axes", FactType::text},
                                           {"grid", FactType::text, "--grid"},
                                           {"text", FactType::text, "--text"},
                                           {"text_valid", FactType::integers},
                                           {"tokens", FactType::token_lists},
                                           {"q_state", FactType::text},
                                           {"head_offset", FactType::integer},
                                           {"extra", FactType::any},
                                           {"block", FactType::text},
                                           {"slot", FactType::text},
                                           {"queries", FactType::any, ""},
                                           {"keys", FactType::any, ""},
                                           {"mask_block", FactType::text, ""},
                                           {"approximation", FactType::text},
                                           {"part", FactType::any, ""},
                                           {"chunk", FactType::integer},
                                           {"score", FactType::text, "--score"}}};

/// What every format of captures begins with.
constexpr std::string_view kAnyCaptureFormat = "attnscope-capture/";

constexpr std::array<std::string_view, 9> kFormat2Facts{
    "block", "slot", "queries", "keys", "mask_block", "approximation", "part", "chunk", "score"};

const FactName* find_fact(std::string_view name) {
  for (const FactName& fact : kFacts) {
    if (fact.name == name) return &fact;
  }
  return nullptr;
}

bool all_of(const nlohmann::json& list, bool (*test)(const nlohmann::json&)) {
  for (const nlohmann::json& value : list) {
    if (!test(value)) return false;
  }
  return true;
}

bool is_text(const nlohmann::json& value) { return value.is_string(); }
/// Steps, layers, counts: never negative, and they must fit the type that holds them.
bool is_integer(const nlohmann::json& value) {
  return value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX);
}
bool is_text_list(const nlohmann::json& value) {
  return value.is_array() && all_of(value, is_text);
}

bool has_type(const nlohmann::json& value, FactType type) {
  switch (type) {
    case FactType::text:
      return value.is_string();
    case FactType::integer:
      return is_integer(value);
    case FactType::number:
      return value.is_number();
    case FactType::strings:
      return is_text_list(value) && !value.empty();
    case FactType::integers:
      return is_integer(value) || (value.is_array() && !value.empty() && all_of(value, is_integer));
    case FactType::token_lists:
      return is_text_list(value) || (value.is_array() && all_of(value, is_text_list));
    case FactType::any:
      return true;
  }
  return false;
}

std::string_view type_text(FactType type) {
  switch (type) {
    case FactType::text:
      return "a string";
    case FactType::integer:
      return "a whole number from 0 to 2^63-1";
    case FactType::number:
      return "a number";
    case FactType::strings:
      return "a list of strings";
    case FactType::integers:
      return "a whole number from 0 to 2^63-1, or a list of them";
    case FactType::token_lists:
      return "a list of strings, or a list of such lists";
    case FactType::any:
      return "JSON";
  }
  return "";
}

/// The value that metadata writes so; nothing where it is none.
std::optional<nlohmann::json> metadata_value(const FactName& fact, const std::string& text) {
  if (fact.type == FactType::text) {
    return valid_utf8(text) ? std::optional<nlohmann::json>(text) : std::nullopt;
  }
  try {
    nlohmann::json value = parse_strict_json(text, "--as", std::string(fact.name));
    return has_type(value, fact.type) ? std::optional(std::move(value)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// What --as calls the branches of a call: names, parted by commas.
constexpr std::string_view kBranch = "branch";

std::optional<nlohmann::json> branch_names(const std::string& text) {
  if (!valid_utf8(text)) return std::nullopt;
  nlohmann::json names = nlohmann::json::array();
  std::istringstream words(text);
  for (std::string name; std::getline(words, name, ',');) names.push_back(name);
  return names;
}

/// The names that --as takes.
std::vector<std::string> told_names() {
  std::vector<std::string> names{std::string(kBranch)};
  for (const FactName& fact : kFacts) {
    if (fact.option == "--as") names.emplace_back(fact.name);
  }
  return names;
}

/// At most so much of a value is quoted in a message.
std::string quoted(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

}  // namespace

std::string capture_format(const std::map<std::string, std::string>& metadata) {
  const auto format = metadata.find("format");
  const bool is_ours = format != metadata.end() && format->second.starts_with(kAnyCaptureFormat);
  return is_ours ? format->second : "";
}

void check_capture_format(const nlohmann::json& format, const std::string& file) {
  if (format == kCaptureFormat || format == kCaptureFormat2) return;
  throw file_error(file, "format",
                   "expected \"" + std::string(kCaptureFormat) + "\" or \"" +
                       std::string(kCaptureFormat2) + "\" (got " + format.dump() + ")");
}

bool is_format_2_fact(const std::string& fact) {
  return std::find(kFormat2Facts.begin(), kFormat2Facts.end(), fact) != kFormat2Facts.end();
}

std::optional<double> parse_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void CallFacts::add_metadata(const std::map<std::string, std::string>& metadata,
                             const std::string& file) {
  for (const auto& [name, text] : metadata) {
    if (name == "format" && capture_format(metadata).empty()) continue;
    const FactName* fact = find_fact(name);
    if (fact == nullptr) {
      unknown_.push_back(one_line("metadata key " + name));
    } else if (fact->type == FactType::text) {
      record(name, text, file);
    } else {
      record(name, parse_strict_json(text, file, "metadata key " + name), file);
    }
  }
}

void CallFacts::add_entry(const nlohmann::json& entry, const std::string& file,
                          const std::string& origin) {
  for (const auto& [name, value] : entry.items()) {
    if (name == "file") continue;
    if (find_fact(name) == nullptr) {
      unknown_.push_back(one_line("capture.json key " + name));
    } else {
      record(name, value, file, origin);
    }
  }
}

void CallFacts::add_shared(const nlohmann::json& root, const std::string& file) {
  for (const char* name : {"model", "prompt"}) {
    if (root.contains(name)) record(name, root[name], file);
  }
}

void CallFacts::record(const std::string& name, nlohmann::json value, const std::string& file,
                       const std::string& origin) {
  const FactType type = find_fact(name)->type;
  if (!has_type(value, type)) {
    throw file_error(file, name,
                     "expected " + std::string(type_text(type)) + " (got " + quoted(value) + ")");
  }
  const auto known = facts_.find(name);
  if (known == facts_.end()) {
    facts_[name] = {std::move(value), origin, file};
    return;
  }
  if (known->second.value != value) {
    throw file_error(file, name,
                     "is " + quoted(value) + ", but " + known->second.source + " says " +
                         quoted(known->second.value));
  }
}

ToldFact parse_told_fact(const std::string& name, const std::string& text) {
  const std::string where = "--as " + one_line(name + "=" + text) + ": ";
  const FactName* const fact = find_fact(name == kBranch ? "branches" : name);
  if (fact == nullptr || fact->option.empty()) {
    const std::vector<std::string> names = told_names();
    const std::string nearest = nearest_word(name, names);
    std::string list;
    for (const std::string& each : names) list += (list.empty() ? "" : ", ") + each;
    throw usage_error(where + "no such fact" +
                      (nearest.empty() ? "" : ", did you mean " + nearest + "?") + " (" + list +
                      ")");
  }
  if (fact->option != "--as") throw usage_error(where + "is told by " + std::string(fact->option));
  if (text.empty()) throw usage_error(where + "a value is missing");
  const auto value = name == kBranch ? branch_names(text) : metadata_value(*fact, text);
  if (!value) throw usage_error(where + "expected " + std::string(type_text(fact->type)));
  return {std::string(fact->name), *value};
}

std::string told_option(const std::string& fact) {
  return "--as " + (fact == "branches" ? std::string(kBranch) : fact);
}

void CallFacts::set(const std::string& fact, nlohmann::json value, std::string origin) {
  facts_[fact] = {std::move(value), std::move(origin), ""};
}

const CallFacts::Fact* CallFacts::find(const std::string& fact) const {
  const auto found = facts_.find(fact);
  return found == facts_.end() ? nullptr : &found->second;
}

std::optional<std::string> CallFacts::text(const std::string& fact) const {
  const Fact* found = find(fact);
  return found ? std::optional(found->value.get<std::string>()) : std::nullopt;
}

std::optional<int64_t> CallFacts::integer(const std::string& fact) const {
  const Fact* found = find(fact);
  return found ? std::optional(found->value.get<int64_t>()) : std::nullopt;
}

std::optional<double> CallFacts::number(const std::string& fact) const {
  const Fact* found = find(fact);
  return found ? std::optional(found->value.get<double>()) : std::nullopt;
}

std::vector<std::string> CallFacts::strings(const std::string& fact) const {
  const Fact* found = find(fact);
  return found ? found->value.get<std::vector<std::string>>() : std::vector<std::string>();
}

}  // namespace attnscope
