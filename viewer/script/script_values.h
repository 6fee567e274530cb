#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/script/measured.h"
#include "viewer/settings/settings.h"

namespace attnscope {

/// A number or a word that `print` tells and `expect` compares: what a window measures, and every
/// setting.
struct ScriptValue {
  std::string_view name;
  bool number = false;
  std::vector<std::string> told = {};  ///< the words that it can be; empty: any
  /// The value as print writes it. Throws Error(usage), without the name, where it is not known.
  std::function<std::string(const SettingPlace&, const Measured&)> text = {};
  /// Of a number, as it was measured and not as it is printed.
  std::function<double(const SettingPlace&, const Measured&)> exact_number = {};
};

const std::vector<ScriptValue>& script_values();
/// Throws Error(usage) that begins with `what` and lists the names.
const ScriptValue& parse_script_value(std::string_view what, const std::string& name);

/// Throw Error(usage) "NAME: no capture is open" where the value is not known.
std::string value_text(const ScriptValue& value, const SettingPlace& at, const Measured& all);
double value_number(const ScriptValue& value, const SettingPlace& at, const Measured& all);

}  // namespace attnscope
