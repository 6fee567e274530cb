#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "io/files/json_types.h"

namespace attnscope {

/// The type of a fact's value.
enum class FactType : uint8_t {
  text,
  integer,
  number,
  numbers,
  strings,
  integers,
  token_lists,
  difference,  ///< what is taken from a call's result: call_minus.h
  any
};

bool has_type(const Json& value, FactType type);
/// "a whole number from 0 to 2^63-1".
std::string_view type_text(FactType type);

/// A value as somebody recorded it: of the fact's type, null where it says nothing (None), or as it
/// was where it cannot be one.
struct FactReading {
  Json value;
  bool is_one = true;
};
/// Takes what means a value of the type for that: 10.0 for 10, a list of equal numbers for the
/// number.
FactReading read_fact(FactType type, Json value);
/// Reads the value of a fact with a name from a text of metadata. "(7, 12, 12)" is a grid.
FactReading read_fact_text(std::string_view fact, FactType type, const std::string& text);
/// Reads is_causal and its like: "causal", or null where there is no such mask.
FactReading read_causal(const std::string& text);

}  // namespace attnscope
