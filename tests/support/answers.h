#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "io/files/json_types.h"

namespace attnscope::test {

/// A command's JSON answer without what it says of its files and of the program, which a file with
/// the same content does not say.
inline OrderedJson answer_alone(const std::string& printed) {
  OrderedJson answer = OrderedJson::parse(printed);
  for (const char* name : {"attnscope_version", "input", "out"}) answer.erase(name);
  if (answer.at("capture_hash").is_null()) answer.erase("capture_hash");
  return answer;
}

inline bool is_error_answer(const std::string& printed) {
  return OrderedJson::parse(printed, nullptr, false).value("format", "") == "attnscope-error/1";
}

}  // namespace attnscope::test
