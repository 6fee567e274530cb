#include "io/metrics/metric_line.h"

#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/files/base64.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

static_assert(std::endian::native == std::endian::little, "journals hold little-endian numbers");

constexpr const char* kTypes[] = {"f64", "f32", "i32", "text"};

[[noreturn]] void fail_line() { throw usage_error("is no group of metrics"); }

OrderedJson values_json(const MetricValues& values) {
  return std::visit(
      [](const auto& list) {
        using Value = typename std::decay_t<decltype(list)>::value_type;
        if constexpr (std::is_same_v<Value, std::string>) {
          return OrderedJson(list);
        } else {
          return OrderedJson(to_base64(std::as_bytes(std::span(list))));
        }
      },
      values);
}

template <typename Value>
MetricValues parse_numbers(const OrderedJson& json, size_t count) {
  std::vector<Value> list(count);
  if (!from_base64(json.get_ref<const std::string&>(), std::as_writable_bytes(std::span(list)))) {
    fail_line();
  }
  return list;
}

MetricValues parse_values(const std::string& type, const OrderedJson& json, size_t count) {
  if (type == "f64") return parse_numbers<double>(json, count);
  if (type == "f32") return parse_numbers<float>(json, count);
  if (type == "i32") return parse_numbers<int32_t>(json, count);
  if (type != "text") fail_line();
  auto list = json.get<std::vector<std::string>>();
  if (list.size() != count) fail_line();
  return list;
}

}  // namespace

OrderedJson group_line(const MetricGroup& group) {
  OrderedJson json{
      {"call", call_description_json(group.call)}, {"batch", group.batch}, {"heads", group.heads}};
  OrderedJson& variables = json["variables"] = OrderedJson::array();
  for (const MetricVariable& v : group.variables) {
    variables.push_back({{"name", v.name},
                         {"long_name", v.long_name},
                         {"of_heads", v.of_heads},
                         {"axes", v.axes},
                         {"shape", v.shape},
                         {"labels", v.labels},
                         {"type", kTypes[static_cast<size_t>(v.type())]},
                         {"values", values_json(v.values)}});
  }
  return json;
}

MetricGroup parse_group_line(const OrderedJson& json) {
  MetricGroup group;
  group.call = parse_call_description(json.at("call"));
  json.at("batch").get_to(group.batch);
  json.at("heads").get_to(group.heads);
  for (const OrderedJson& v : json.at("variables")) {
    MetricVariable variable;
    v.at("name").get_to(variable.name);
    v.at("long_name").get_to(variable.long_name);
    v.at("of_heads").get_to(variable.of_heads);
    v.at("axes").get_to(variable.axes);
    v.at("shape").get_to(variable.shape);
    v.at("labels").get_to(variable.labels);
    const int64_t extents[] = {
        variable.of_heads ? std::ssize(group.batch) * std::ssize(group.heads) : 1, variable.cell()};
    const auto count = checked_count(extents);
    // Values are at least a byte each in the line, which is in memory.
    const OrderedJson& values = v.at("values");
    const int64_t most = values.is_string() ? std::ssize(values.get_ref<const std::string&>())
                                            : static_cast<int64_t>(values.size());
    if (!count || *count > most || variable.axes.size() != variable.shape.size()) fail_line();
    variable.values =
        parse_values(v.at("type").get<std::string>(), values, static_cast<size_t>(*count));
    group.variables.push_back(std::move(variable));
  }
  if (group.find(kMeasured) == nullptr || group.find(kMeasured)->type() != MetricType::i32) {
    fail_line();
  }
  return group;
}

}  // namespace attnscope
