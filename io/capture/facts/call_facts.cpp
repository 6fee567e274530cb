#include "io/capture/facts/call_facts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <sstream>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/problem/score.h"
#include "io/capture/facts/fact_value.h"
#include "io/files/json_types.h"
#include "io/files/strict_json.h"
#include "io/files/utf8.h"
#include "io/tensors/recorded_values.h"
#include "io/tensors/value_names.h"

namespace attnscope {
namespace {

struct FactName {
  std::string_view name;
  FactType type;
  /// The option that tells it; empty: none does.
  std::string_view option = "--as";
};

constexpr std::array<FactName, 48> kFacts{{{"format", FactType::text, ""},
                                           {"model", FactType::text},
                                           {"prompt", FactType::text},
                                           {"step", FactType::integer},
                                           {"timestep", FactType::number},
                                           {"layer", FactType::integer},
                                           {"layer_name", FactType::text},
                                           {"kind", FactType::text},
                                           {"branches", FactType::strings},
                                           {"layout", FactType::text, "--layout"},
                                           {"scale", FactType::numbers, "--scale"},
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
                                           {"minus", FactType::difference},
                                           {"chunk", FactType::integer},
                                           {"score", FactType::text, "--score"},
                                           {"softcap", FactType::number, "--score"},
                                           {"forward", FactType::integer, ""},
                                           {"of_step", FactType::integer, ""},
                                           {"call", FactType::integer, ""},
                                           {"q_scale", FactType::number, "--q-scale"},
                                           {"k_scale", FactType::number, "--k-scale"},
                                           {"v_scale", FactType::number},
                                           {"q_dtype", FactType::text, "--q-dtype"},
                                           {"k_dtype", FactType::text, "--k-dtype"},
                                           {"v_dtype", FactType::text},
                                           {"q_block", FactType::integer},
                                           {"k_block", FactType::integer},
                                           {"v_block", FactType::integer},
                                           {"q_scale_2", FactType::number},
                                           {"k_scale_2", FactType::number},
                                           {"v_scale_2", FactType::number},
                                           {"nibbles", FactType::text},
                                           {"scales", FactType::text}}};

/// The beginning of every name of a capture format.
constexpr std::string_view kAnyCaptureFormat = "attnscope-capture/";

constexpr std::array<std::string_view, 27> kFormat2Facts{
    "q_scale",    "k_scale",       "v_scale",   "q_dtype",   "k_dtype",   "v_dtype", "q_block",
    "k_block",    "v_block",       "scales",    "block",     "slot",      "queries", "keys",
    "mask_block", "approximation", "part",      "minus",     "chunk",     "score",   "forward",
    "of_step",    "call",          "q_scale_2", "k_scale_2", "v_scale_2", "nibbles"};

/// The fact that files of other formats know by many names.
constexpr std::string_view kSoftcap = "softcap";

const FactName* find_fact(std::string_view name) {
  for (const FactName& fact : kFacts) {
    if (fact.name == name) return &fact;
  }
  return nullptr;
}

/// The value that metadata writes so; nothing where it is none.
std::optional<Json> metadata_value(const FactName& fact, const std::string& text) {
  if (fact.type == FactType::text) {
    return valid_utf8(text) ? std::optional<Json>(text) : std::nullopt;
  }
  try {
    Json value = parse_strict_json(text, "--as", std::string(fact.name));
    return has_type(value, fact.type) ? std::optional(std::move(value)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The name of the fact branches in --as, whose value is names parted by commas.
constexpr std::string_view kBranch = "branch";

std::optional<Json> branch_names(const std::string& text) {
  if (!valid_utf8(text)) return std::nullopt;
  Json names = Json::array();
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
std::string quoted(const Json& value) {
  std::string text = value.is_number() ? text_of_value(value)
                                       : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

}  // namespace

std::string capture_format(const std::map<std::string, std::string>& metadata) {
  const auto format = metadata.find("format");
  const bool is_ours = format != metadata.end() && format->second.starts_with(kAnyCaptureFormat);
  return is_ours ? format->second : "";
}

void check_capture_format(const Json& format, const std::string& file) {
  if (format == kCaptureFormat || format == kCaptureFormat2) return;
  throw file_error(file, "format",
                   "expected \"" + std::string(kCaptureFormat) + "\" or \"" +
                       std::string(kCaptureFormat2) + "\" (got " + format.dump() + ")");
}

bool is_format_2_fact(const std::string& fact) {
  return std::find(kFormat2Facts.begin(), kFormat2Facts.end(), fact) != kFormat2Facts.end();
}

std::string unknown_key(const std::string& what) {
  for (const std::string_view kind : {"metadata key ", "capture.json key ", "tensor "}) {
    if (what.starts_with(kind)) return what.substr(kind.size());
  }
  return what;
}

std::optional<double> parse_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::vector<double>> parse_numbers(const std::string& text) {
  std::vector<double> numbers;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const auto number = parse_number(text.substr(begin, end - begin));
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    begin = end + 1;
  }
  return numbers;
}

namespace {

/// The fact that a key of metadata stands for; empty: none.
std::string fact_of(const std::string& key, const std::string& text, MetadataOf of) {
  if (of == MetadataOf::capture) return find_fact(key) != nullptr ? key : "";
  const std::string usual = fact_of_key(key);
  if (!usual.empty()) return usual;
  // Words such as block and score mean something else elsewhere.
  const bool is_other = key == "score" ? !parse_score(text) : is_format_2_fact(key);
  return find_fact(key) != nullptr && !is_other ? key : "";
}

/// "blocks.3.attn": a layer that is told by the name of its module.
bool names_module(const std::string& text) {
  const auto has = [&](int (*is)(int)) {
    return std::any_of(text.begin(), text.end(), [&](unsigned char c) { return is(c) != 0; });
  };
  return text.size() < 256 && has(std::isalpha) && has(std::isdigit) &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '/' || c == '-';
         });
}

/// One scale, kept as a tensor of float32 and written in full.
bool alike_as_float32(const Json& a, const Json& b) {
  return a.is_number_float() && b.is_number_float() && a.get<float>() == b.get<float>();
}

/// True of the facts that shape a map: a second, different statement of one is no mere unknown key.
bool shapes_map(const std::string& fact) {
  return fact == "scale" || fact == "mask" || fact == kSoftcap;
}

/// True where the value says that there is no cap: "None", 0 and False.
bool says_no_cap(const std::string& fact, const std::string& key, const std::string& text) {
  return fact == kSoftcap && says_nothing(*shaping_name(key), text);
}

}  // namespace

void CallFacts::add_metadata(const std::map<std::string, std::string>& metadata,
                             const std::string& file, MetadataOf of) {
  // A fact's own name goes before those that others have for it.
  for (const bool own : {true, false}) {
    for (const auto& [key, text] : metadata) {
      if (key == "format" && capture_format(metadata).empty()) continue;
      const std::string fact = fact_of(key, text, of);
      if ((fact == key) == own && !ignores(key)) add_text(key, fact, text, file, of);
    }
  }
}

void CallFacts::add_text(const std::string& key, const std::string& fact, const std::string& text,
                         const std::string& file, MetadataOf of) {
  if (fact.empty()) {
    const ShapingName* shaping = shaping_name(key);
    if (shaping == nullptr || !says_nothing(*shaping, text)) {
      unknown_.push_back(one_line("metadata key " + key));
    }
    return;
  }
  if (says_no_cap(fact, key, text)) return;
  const FactType type = find_fact(fact)->type;
  if (type == FactType::any && of == MetadataOf::capture) {
    record(fact, parse_strict_json(text, file, "metadata key " + key), file);
    return;
  }
  const bool is_causal = fact == "mask" && key != fact;
  FactReading reading = is_causal ? read_causal(text) : read_fact_text(fact, type, text);
  if (reading.value.is_null()) return;
  // "Not known", as scripts of others write it.
  if (of == MetadataOf::dump && type == FactType::integer && reading.value == -1) return;
  if (!reading.is_one) {
    if (fact == "layer" && of == MetadataOf::dump && !has("layer_name") && names_module(text)) {
      return record("layer_name", text, file);
    }
    const std::string expected(is_causal ? "true or false" : type_text(type));
    bad_[fact] = {file, key, "expected " + expected + " (got " + quoted(reading.value) + ")"};
    return;
  }
  const Fact* known = find(fact);
  if (key != fact && known != nullptr && known->value != reading.value && !shapes_map(fact)) {
    unknown_.push_back(one_line("metadata key " + key + " = " + text));
    return;
  }
  record(fact, std::move(reading.value), file);
}

void CallFacts::add_entry(const Json& entry, const std::string& file, const std::string& origin) {
  for (const auto& [name, value] : entry.items()) {
    if (name == "file" || ignores(name)) continue;
    if (fact_of_key(name) == kSoftcap) {
      if (!says_no_cap(std::string(kSoftcap), name, text_of_value(value))) {
        add_value(std::string(kSoftcap), value, file, origin);
      }
    } else if (find_fact(name) == nullptr) {
      const ShapingName* shaping = shaping_name(name);
      if (shaping != nullptr && says_nothing(*shaping, text_of_value(value))) continue;
      unknown_.push_back(one_line("capture.json key " + name));
    } else {
      add_value(name, value, file, origin);
    }
  }
}

void CallFacts::add_shared(const Json& root, const std::string& file) {
  for (const char* name : {"model", "prompt"}) {
    if (root.contains(name) && !ignores(name)) add_value(name, root[name], file);
  }
}

void CallFacts::add_value(const std::string& fact, const Json& value, const std::string& file,
                          const std::string& origin) {
  const FactType type = find_fact(fact)->type;
  const bool is_written = value.is_string() && type != FactType::text && type != FactType::any;
  FactReading reading =
      is_written ? read_fact_text(fact, type, value.get<std::string>()) : read_fact(type, value);
  if (reading.value.is_null()) return;
  if (reading.is_one) {
    record(fact, std::move(reading.value), file, origin);
  } else {
    bad_[fact] = {file, fact,
                  "expected " + std::string(type_text(type)) + " (got " + quoted(value) + ")"};
  }
}

void CallFacts::add_tensor(const std::string& key, const std::string& file,
                           const std::string& got) {
  const std::string fact = fact_of_key(key);
  const std::string expected(fact == "mask" ? "true or false" : type_text(find_fact(fact)->type));
  bad_[fact] = {file, key, "expected " + expected + " (got " + got + ")"};
}

void CallFacts::require_values() const {
  if (bad_.empty()) return;
  const auto& [fact, bad] = *bad_.begin();
  const std::string_view option = find_fact(fact)->option;
  std::string way = "--ignore " + bad.key + " leaves it out";
  if (!option.empty()) {
    way = (option == "--as" ? told_option(fact) + "=VALUE" : std::string(option)) + " states it, " +
          way;
  }
  throw file_error(bad.file, bad.key, bad.what + ": " + way);
}

bool CallFacts::ignores(const std::string& key) {
  for (const std::string& name : ignore_) {
    if (name != key && name != last_part(key)) continue;
    ignored_.insert(name);
    return true;
  }
  return false;
}

void CallFacts::record(const std::string& name, Json value, const std::string& file,
                       const std::string& origin) {
  const auto known = facts_.find(name);
  if (known == facts_.end()) {
    facts_[name] = {std::move(value), origin, file};
    return;
  }
  if (known->second.value != value && !alike_as_float32(known->second.value, value)) {
    throw file_error(file, name,
                     "is " + quoted(value) + ", but " + known->second.source + " says " +
                         quoted(known->second.value));
  }
}

std::vector<std::string> left_out_names(const std::map<std::string, std::string>& told) {
  std::vector<std::string> names;
  for (const auto& [name, text] : told) {
    const FactName* fact = find_fact(name);
    // --as does not tell facts that have an option of their own.
    const bool may_be_text = fact != nullptr && fact->type == FactType::text &&
                             (fact->option == "--as" || fact->option.empty());
    if (text == "none" && !may_be_text) names.push_back(name);
  }
  return names;
}

ToldFact parse_told_fact(const std::string& name, const std::string& text) {
  const std::string where = "--as " + one_line(name + "=" + text) + ": ";
  if (!left_out_names({{name, text}}).empty()) return {name, {}};
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

void CallFacts::set(const std::string& fact, Json value, std::string origin) {
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

std::vector<double> CallFacts::numbers(const std::string& fact) const {
  const Fact* found = find(fact);
  if (found == nullptr) return {};
  return found->value.is_array() ? found->value.get<std::vector<double>>()
                                 : std::vector{found->value.get<double>()};
}

std::vector<std::string> CallFacts::strings(const std::string& fact) const {
  const Fact* found = find(fact);
  return found ? found->value.get<std::vector<std::string>>() : std::vector<std::string>();
}

}  // namespace attnscope
