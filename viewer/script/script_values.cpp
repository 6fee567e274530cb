#include "viewer/script/script_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "viewer/settings/settings.h"

namespace attnscope {
namespace {

struct MeasuredNumber {
  std::string_view name;
  Measured::Number Measured::*read;
};

constexpr MeasuredNumber kNumbers[]{{"first_picture_ms", &Measured::first_picture_ms},
                                    {"query_ms", &Measured::query_ms},
                                    {"frame_ms_max", &Measured::frame_ms_max},
                                    {"frame_cpu_ms_max", &Measured::frame_cpu_ms_max},
                                    {"cpu_ms", &Measured::cpu_ms},
                                    {"frames", &Measured::frames},
                                    {"texture_mib", &Measured::texture_mib},
                                    {"host_mib", &Measured::host_mib},
                                    {"queue", &Measured::queue},
                                    {"level", &Measured::level},
                                    {"atlas_heads", &Measured::atlas_heads},
                                    {"atlas_sketched", &Measured::atlas_sketched},
                                    {"atlas_exact", &Measured::atlas_exact},
                                    {"curve_points", &Measured::curve_points},
                                    {"words", &Measured::words},
                                    {"word_mass", &Measured::word_mass},
                                    {"text_mass", &Measured::text_mass},
                                    {"special_mass", &Measured::special_mass},
                                    {"js", &Measured::js},
                                    {"js_max", &Measured::js_max},
                                    {"js_rows", &Measured::js_rows},
                                    {"film_frame", &Measured::film_frame},
                                    {"film_frames", &Measured::film_frames},
                                    {"range_low", &Measured::range_low},
                                    {"range_high", &Measured::range_high},
                                    {"share_below", &Measured::share_below},
                                    {"share_above", &Measured::share_above},
                                    {"density", &Measured::density},
                                    {"recall", &Measured::recall},
                                    {"oracle_recall", &Measured::oracle_recall},
                                    {"output_error", &Measured::output_error},
                                    {"tracks_rows", &Measured::tracks_rows},
                                    {"pictures", &Measured::pictures}};

/// Whole numbers as such, others with six digits.
std::string number_text(double value) {
  if (std::abs(value) < 1e15 && value == std::floor(value)) return fmt::format("{:.0f}", value);
  return fmt::format("{:.6g}", value);
}

ScriptValue number_value(std::string_view name,
                         std::function<double(const SettingPlace&, const Measured&)> read) {
  ScriptValue value{.name = name, .number = true};
  value.text = [read](const SettingPlace& at, const Measured& all) {
    return number_text(read(at, all));
  };
  value.exact_number = std::move(read);
  return value;
}

ScriptValue setting_value(const Setting& setting) {
  ScriptValue value{.name = setting.name, .number = setting.number, .told = setting.told};
  value.text = [&setting](const SettingPlace& at, const Measured&) { return setting.value(at); };
  value.exact_number = [&setting](const SettingPlace& at, const Measured&) {
    return std::stod(setting.value(at));
  };
  return value;
}

/// The numbers of the window.
void add_numbers(std::vector<ScriptValue>& all) {
  for (const MeasuredNumber& number : kNumbers) {
    all.push_back(number_value(number.name,
                               [read = number.read](const SettingPlace&, const Measured& measured) {
                                 const Measured::Number value = measured.*read;
                                 if (!value) throw usage_error("not known yet");
                                 return *value;
                               }));
  }
  all.push_back(number_value("calls", [](const SettingPlace& at, const Measured&) {
    return at.picker == nullptr ? 0.0 : static_cast<double>(at.picker->calls().size());
  }));
  all.push_back(number_value("rows", [](const SettingPlace& at, const Measured&) {
    return static_cast<double>(at.call().queries.tokens());
  }));
  all.push_back(number_value("cols", [](const SettingPlace& at, const Measured&) {
    return static_cast<double>(at.call().keys.tokens());
  }));
}

/// And its words.
void add_words(std::vector<ScriptValue>& all) {
  all.push_back({.name = "exact",
                 .told = {"true", "false"},
                 .text = [](const SettingPlace& at, const Measured& measured) {
                   at.call();
                   return std::string(measured.exact ? "true" : "false");
                 }});
  all.push_back({.name = "playing",
                 .told = {"on", "off"},
                 .text = [](const SettingPlace&, const Measured& measured) {
                   return std::string(measured.playing ? "on" : "off");
                 }});
  all.push_back(
      {.name = "upload",
       .told = {"interop", "staging", "measuring"},
       .text = [](const SettingPlace&, const Measured& measured) { return measured.upload; }});
  all.push_back({.name = "clipboard", .text = [](const SettingPlace&, const Measured& measured) {
                   return measured.clipboard;
                 }});
  all.push_back(
      {.name = "connection",
       .told = {"none", "open", "lost"},
       .text = [](const SettingPlace&, const Measured& measured) { return measured.connection; }});
}

/// A message with the value's name in front.
template <typename Read>
auto read_named(const ScriptValue& value, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", value.name, error.what()));
  }
}

}  // namespace

const std::vector<ScriptValue>& script_values() {
  static const std::vector<ScriptValue> kAll = [] {
    std::vector<ScriptValue> all;
    add_numbers(all);
    add_words(all);
    for (const Setting& setting : settings()) {
      if (!setting.name.empty()) all.push_back(setting_value(setting));
    }
    return all;
  }();
  return kAll;
}

const ScriptValue& parse_script_value(std::string_view what, const std::string& name) {
  std::vector<std::string> names;
  for (const ScriptValue& value : script_values()) {
    if (value.name == name) return value;
    names.emplace_back(value.name);
  }
  throw unknown_name(what, name, names);
}

std::string value_text(const ScriptValue& value, const SettingPlace& at, const Measured& all) {
  return read_named(value, [&] { return value.text(at, all); });
}

double value_number(const ScriptValue& value, const SettingPlace& at, const Measured& all) {
  return read_named(value, [&] { return value.exact_number(at, all); });
}

}  // namespace attnscope
