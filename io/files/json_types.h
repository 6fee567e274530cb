#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace attnscope {

/// JSON of which an object keeps its names in the order in which they were added: what people read.
using OrderedJson = nlohmann::ordered_json;
/// JSON of which an object sorts its names: two that are equal print alike.
using Json = nlohmann::json;

/// The number of a list of one, else the list.
template <typename AnyJson = OrderedJson>
AnyJson one_or_list(const std::vector<double>& numbers) {
  return numbers.size() == 1 ? AnyJson(numbers.front()) : AnyJson(numbers);
}

}  // namespace attnscope
