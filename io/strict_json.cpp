#include "io/strict_json.h"

#include <set>
#include <vector>

#include "core/error.h"

namespace attnscope {
namespace {

constexpr int kMaxDepth = 64;

/// The library's text without its own prefix "[json.exception…] ".
std::string plain_message(const std::string& what) {
  const size_t bracket = what.find("] ");
  return bracket == std::string::npos ? what : what.substr(bracket + 2);
}

}  // namespace

nlohmann::json parse_strict_json(std::string_view text, const std::string& file,
                                 const std::string& where) {
  using Event = nlohmann::json::parse_event_t;
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Event event, nlohmann::json& value) {
    if (depth > kMaxDepth) {
      throw file_error(file, where, "JSON is nested deeper than " + std::to_string(kMaxDepth));
    }
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(value.get<std::string>()).second) {
      throw file_error(file, where, "the key \"" + value.get<std::string>() + "\" occurs twice");
    }
    return true;
  };
  try {
    return nlohmann::json::parse(text, watch);
  } catch (const nlohmann::json::exception& e) {
    throw file_error(file, where, "is no valid JSON: " + plain_message(e.what()));
  }
}

}  // namespace attnscope
