#include "io/capture/facts/fact_value.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "io/files/json_types.h"
#include "io/tensors/recorded_values.h"

namespace attnscope {
namespace {

bool all_of(const Json& list, bool (*test)(const Json&)) {
  return std::all_of(list.begin(), list.end(), test);
}

bool is_text(const Json& value) { return value.is_string(); }
/// Steps, layers, counts: never negative, and they must fit the type that holds them.
bool is_integer(const Json& value) {
  return value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX);
}
bool is_number(const Json& value) {
  return value.is_number() && std::isfinite(value.get<double>());
}
bool is_text_list(const Json& value) { return value.is_array() && all_of(value, is_text); }
/// {"slot": "attn.2", "factor": 0.5}, and perhaps "heads".
bool is_difference(const Json& value) {
  if (!value.is_object() || !value.contains("slot") || !value.contains("factor")) return false;
  const bool heads = value.contains("heads");
  return value.size() == (heads ? 3 : 2) && is_text(value["slot"]) && value["slot"] != "" &&
         is_number(value["factor"]) &&
         (!heads || (is_integer(value["heads"]) && value["heads"] != 0));
}

/// 3.0 as 3: arrays of one dtype hold whole numbers as floats.
Json with_whole_number(const Json& value) {
  if (!value.is_number_float()) return value;
  const double number = value.get<double>();
  if (!(number >= 0 && number < 0x1p53) || number != std::floor(number)) return value;
  return static_cast<uint64_t>(number);
}

Json with_whole_numbers(Json value) {
  if (!value.is_array()) return with_whole_number(value);
  for (Json& each : value) each = with_whole_number(each);
  return value;
}

/// The one number that a list has, however often: a timestep is often expanded to the batch.
Json single(const Json& value) {
  if (!value.is_array() || value.empty()) return value;
  const bool alike = std::all_of(value.begin(), value.end(), [&](const Json& each) {
    return each.is_number() && each == value.front();
  });
  return alike ? value.front() : value;
}

/// "7x12x12" of three whole numbers; null of all else.
Json grid_text(const Json& value) {
  if (value.is_array() && value.size() == 1) return grid_text(value.front());
  if (!value.is_array() || value.size() != 3) return {};
  std::string text;
  for (const Json& extent : value) {
    const Json count = with_whole_number(extent);
    if (!is_integer(count)) return {};
    text += (text.empty() ? "" : "x") + count.dump();
  }
  return text;
}

}  // namespace

bool has_type(const Json& value, FactType type) {
  switch (type) {
    case FactType::text:
      return value.is_string();
    case FactType::integer:
      return is_integer(value);
    case FactType::number:
      return is_number(value);
    case FactType::numbers:
      return is_number(value) || (value.is_array() && !value.empty() && all_of(value, is_number));
    case FactType::strings:
      return is_text_list(value) && !value.empty();
    case FactType::integers:
      return is_integer(value) || (value.is_array() && !value.empty() && all_of(value, is_integer));
    case FactType::token_lists:
      return is_text_list(value) || (value.is_array() && all_of(value, is_text_list));
    case FactType::difference:
      return is_difference(value);
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
    case FactType::numbers:
      return "a number, or a list of one a head";
    case FactType::strings:
      return "a list of strings";
    case FactType::integers:
      return "a whole number from 0 to 2^63-1, or a list of them";
    case FactType::token_lists:
      return "a list of strings, or a list of such lists";
    case FactType::difference:
      return "{\"slot\": NAME, \"factor\": NUMBER}, with \"heads\": N of 1 and more or without";
    case FactType::any:
      return "JSON";
  }
  return "";
}

FactReading read_fact(FactType type, Json value) {
  if (type == FactType::numbers) value = single(value);
  if (value.is_null() || has_type(value, type)) return {std::move(value)};
  Json meant = value;
  if (type == FactType::integer || type == FactType::number) meant = single(value);
  if (type == FactType::integer) meant = with_whole_number(meant);
  if (type == FactType::integers) {
    meant = with_whole_numbers(value);
  }
  if (has_type(meant, type)) return {std::move(meant)};
  return {std::move(value), false};
}

FactReading read_fact_text(std::string_view fact, FactType type, const std::string& text) {
  if (type != FactType::text) return read_fact(type, value_of_text(text));
  // A prompt may be any word.
  if (text == "None" && fact != "prompt") return {};
  if (fact == "grid") {
    if (Json grid = grid_text(value_of_text(text)); !grid.is_null()) return {std::move(grid)};
  }
  return {text};
}

FactReading read_causal(const std::string& text) {
  const Json value = single(value_of_text(text));
  if (value == true || value == 1) return {"causal"};
  if (value == false || value == 0 || value.is_null()) return {};
  return {value, false};
}

}  // namespace attnscope
