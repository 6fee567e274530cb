#include "io/capture/call/call_minus.h"

#include <nlohmann/json.hpp>

#include "io/files/json_types.h"

namespace attnscope {

std::optional<CallMinus> minus_of(const CallEntry& call) {
  const auto fact = call.facts.find("minus");
  if (fact == call.facts.end()) return std::nullopt;
  const Json value = Json::parse(fact->second.json);
  CallMinus minus{value["slot"].get<std::string>(), value["factor"].get<double>(), {}};
  if (value.contains("heads")) minus.heads = value["heads"].get<int64_t>();
  return minus;
}

}  // namespace attnscope
