#include "io/capture/facts/forward_log.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "io/capture/facts/fact_value.h"

namespace attnscope {
namespace {

constexpr size_t kMostEntries = 1 << 17;

/// One entry of a list of capture.json: its members by name.
class Entry {
 public:
  Entry(const Json& json, std::string where, const std::string& file)
      : json_(json), where_(std::move(where)), file_(file) {
    if (!json.is_object()) throw file_error(file, where_, "expected an object");
  }

  std::optional<int64_t> number(const char* name) {
    const Json* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!has_type(*value, FactType::integer)) fail(name, type_text(FactType::integer));
    return value->get<int64_t>();
  }
  int64_t needed_number(const char* name) {
    require(name);
    return *number(name);
  }
  std::optional<double> real(const char* name) {
    const Json* value = find(name);
    if (value != nullptr && !value->is_number()) fail(name, "a number");
    return value == nullptr ? std::nullopt : std::optional(value->get<double>());
  }
  std::string text(const char* name) {
    const Json* value = find(name);
    if (value != nullptr && !value->is_string()) fail(name, "a string");
    return value == nullptr ? "" : value->get<std::string>();
  }
  std::string needed_text(const char* name) {
    require(name);
    return text(name);
  }
  bool flag(const char* name) {
    const Json* value = find(name);
    if (value != nullptr && !value->is_boolean()) fail(name, "true or false");
    return value != nullptr && value->get<bool>();
  }
  bool needed_flag(const char* name) {
    require(name);
    return flag(name);
  }
  /// A name, or one a batch item.
  std::vector<std::string> names(const char* name) {
    const Json* value = find(name);
    if (value == nullptr) return {};
    if (value->is_string()) return {value->get<std::string>()};
    const bool strings = value->is_array() && !value->empty() &&
                         std::all_of(value->begin(), value->end(),
                                     [](const Json& each) { return each.is_string(); });
    if (!strings) fail(name, "a string or a list of strings");
    return value->get<std::vector<std::string>>();
  }
  std::optional<int64_t> number_or_null(const char* name) {
    const Json* value = find(name);
    return value == nullptr || value->is_null() ? std::nullopt : number(name);
  }
  void add_unknown(std::vector<std::string>& keys) const {
    for (const auto& [key, value] : json_.items()) {
      if (!known_.contains(key)) keys.push_back(one_line("capture.json key " + where_ + "." + key));
    }
  }
  const std::string& where() const { return where_; }

 private:
  const Json* find(const char* name) {
    known_.insert(name);
    return json_.contains(name) ? &json_[name] : nullptr;
  }
  void require(const char* name) const {
    if (json_.contains(name)) return;
    throw file_error(file_, where_, "the key \"" + std::string(name) + "\" is missing");
  }
  [[noreturn]] void fail(const char* name, std::string_view expected) const {
    std::string got = json_[name].dump(-1, ' ', false, Json::error_handler_t::replace);
    if (got.size() > 60) got = got.substr(0, 57) + "...";
    throw file_error(file_, where_ + "." + name,
                     "expected " + std::string(expected) + " (got " + one_line(got) + ")");
  }

  const Json& json_;
  std::string where_;
  const std::string& file_;
  std::set<std::string> known_;
};

ForwardRecord forward_record(Entry& entry) {
  ForwardRecord record;
  record.forward = entry.needed_number("forward");
  record.step = entry.number("step");
  record.of_step = entry.number("of_step");
  record.branches = entry.names("branch");
  record.timestep = entry.real("timestep");
  record.transformer = entry.needed_text("transformer");
  record.context = entry.text("context");
  entry.number_or_null("batch");
  record.latents = entry.number("latents");
  record.text = entry.number("text");
  record.chosen = entry.needed_flag("chosen");
  record.partial = entry.flag("partial");
  record.calls = entry.number("calls");
  return record;
}

RefusedCall refused_call(Entry& entry) {
  RefusedCall call;
  call.forward = entry.number("forward");
  call.step = entry.number("step");
  call.branches = entry.names("branch");
  call.block = entry.text("block");
  call.slot = entry.text("slot");
  call.layer_name = entry.text("layer_name");
  call.why = entry.needed_text("why");
  return call;
}

/// Hands on each entry of a list; the list as JSON text, empty where there is none.
template <class Take>
std::string read_list(const Json& root, const char* name, const std::string& file,
                      std::vector<std::string>& unknown, const Take& take) {
  if (!root.contains(name)) return "";
  const Json& list = root[name];
  if (!list.is_array()) throw file_error(file, name, "expected a list");
  if (list.size() > kMostEntries) {
    throw file_error(file, name,
                     "has too many entries (got " + std::to_string(list.size()) + ", limit " +
                         std::to_string(kMostEntries) + ")");
  }
  for (size_t i = 0; i < list.size(); ++i) {
    Entry entry(list[i], std::string(name) + "[" + std::to_string(i) + "]", file);
    take(entry);
    entry.add_unknown(unknown);
  }
  return list.empty() ? "" : list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string counted(int64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

int64_t ForwardLog::partial_count() const {
  return std::count_if(forwards.begin(), forwards.end(),
                       [](const ForwardRecord& record) { return record.partial; });
}

ForwardLog read_forward_log(const Json& root, const std::string& file) {
  ForwardLog log;
  std::set<int64_t> numbers;
  log.forwards_json = read_list(root, "forwards", file, log.unknown_keys, [&](Entry& entry) {
    log.forwards.push_back(forward_record(entry));
    if (numbers.insert(log.forwards.back().forward).second) return;
    throw file_error(file, entry.where() + ".forward",
                     std::to_string(log.forwards.back().forward) + " is there twice");
  });
  log.refused_json = read_list(root, "refused", file, log.unknown_keys,
                               [&](Entry& entry) { log.refused.push_back(refused_call(entry)); });
  return log;
}

void add_forward_log(OrderedJson& root, const ForwardLog& log) {
  if (!log.forwards_json.empty()) root["forwards"] = OrderedJson::parse(log.forwards_json);
  if (!log.refused_json.empty()) root["refused"] = OrderedJson::parse(log.refused_json);
}

std::string Refusal::count_text() const {
  if (forwards == 0) return counted(calls, "call");
  return (calls == 0 ? "" : counted(calls, "call") + ", ") + counted(forwards, "forward");
}

std::vector<Refusal> refusals(const ForwardLog& log) {
  std::vector<Refusal> all;
  std::map<std::string_view, size_t> places;
  for (const RefusedCall& call : log.refused) {
    const auto [place, is_new] = places.emplace(call.why, all.size());
    if (is_new) all.push_back({call.why, 0, 0, &call});
    Refusal& refusal = all[place->second];
    ++(call.is_forward() ? refusal.forwards : refusal.calls);
  }
  return all;
}

std::string refused_place(const RefusedCall& call) {
  std::string text;
  const auto add = [&](const std::string& word) {
    text += (text.empty() || word.empty() ? "" : ", ") + word;
  };
  if (call.forward) add("forward " + std::to_string(*call.forward));
  if (call.step) add("step " + std::to_string(*call.step));
  for (const std::string& branch : call.branches) add(branch);
  const std::string dot = call.block.empty() || call.slot.empty() ? "" : ".";
  add(call.block.empty() && call.slot.empty() ? call.layer_name : call.block + dot + call.slot);
  return one_line(text);
}

}  // namespace attnscope
