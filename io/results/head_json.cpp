#include "io/results/head_json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "io/files/json_types.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

OrderedJson json_of(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson();
}
OrderedJson json_of(int64_t count) { return count; }
template <typename T>
OrderedJson json_of(const std::optional<T>& value) {
  return value ? json_of(*value) : OrderedJson();
}
OrderedJson json_of(const Estimate& estimate) { return json_of(estimate.value); }

/// The dimensions of the array from `axis` on, whose values begin at `value`, which moves on.
OrderedJson nested(const HeadArrayValues& array, size_t axis, size_t& value) {
  OrderedJson list = OrderedJson::array();
  for (int64_t i = 0; i < array.shape[axis]; ++i) {
    list.push_back(axis + 1 < array.shape.size() ? nested(array, axis + 1, value)
                                                 : json_of(array.values[value++]));
  }
  return list;
}

OrderedJson sink_json(const Sink& sink) {
  OrderedJson json{{"key", sink.key}};
  if (sink.place) {
    json["t"] = sink.place->t;
    json["y"] = sink.place->y;
    json["x"] = sink.place->x;
  }
  if (sink.text_index) json["text_index"] = *sink.text_index;
  if (sink.token) json["token"] = *sink.token;
  json["mass"] = sink.mass;
  return json;
}

/// {"video": {"video": 0.8, "text": 0.2}}: from the segments of the queries to those of the keys.
OrderedJson segment_mass_json(const SegmentMasses& masses) {
  OrderedJson json = OrderedJson::object();
  size_t value = 0;
  for (const std::string& from : masses.from) {
    OrderedJson& row = json[from] = OrderedJson::object();
    for (const std::string& to : masses.to) row[to] = json_of(masses.mass[value++]);
  }
  return json;
}

/// Thrown where JSON is no record although all that a record needs is there.
struct NoRecord {};

/// Reads a record. Throws NoRecord, or nlohmann's exceptions where something is not there or not of
/// its type.
class Reader {
 public:
  explicit Reader(const OrderedJson& json) : json_(json) {}

  HeadRecord read() const {
    HeadRecord record;
    record.name = parse_name_json(json_);
    HeadMetrics& metrics = record.metrics;
    const auto head_class = parse_head_class(json_.at("class").get<std::string>());
    if (!head_class) throw NoRecord();
    metrics.head_class = *head_class;
    for (const HeadField& field : head_fields()) {
      std::visit([&](auto member) { read_field(field, metrics.*member); }, field.member);
    }
    for (const ClassScoreField& score : class_score_fields()) {
      read_value(json_.at("class_scores").at(std::string(score.name)),
                 metrics.class_scores.*score.member);
    }
    for (const OrderedJson& sink : json_.at("sinks")) metrics.sinks.push_back(read_sink(sink));
    if (json_.contains("segment_mass")) {
      metrics.segment_mass = read_segment_mass(json_.at("segment_mass"));
    }
    for (const auto& [key, value] : json_.items()) {
      if (const auto which = parse_head_array(key)) {
        record.arrays.push_back(read_array(*which, value));
      }
    }
    return record;
  }

 private:
  template <typename T>
  static void read_value(const OrderedJson& json, T& value) {
    value = json.get<T>();
  }
  template <typename T>
  static void read_value(const OrderedJson& json, std::optional<T>& value) {
    if (!json.is_null()) value = json.get<T>();
  }

  template <typename T>
  void read_field(const HeadField& field, T& value) const {
    read_value(json_.at(std::string(field.name)), value);
  }
  void read_field(const HeadField& field, Estimate& estimate) const {
    read_value(json_.at(std::string(field.name)), estimate.value);
    const auto error = json_.find(field.error_name());
    if (error != json_.end()) read_value(*error, estimate.standard_error);
  }

  static SegmentMasses read_segment_mass(const OrderedJson& json) {
    SegmentMasses masses;
    for (const auto& [from, row] : json.items()) {
      std::vector<std::string> to;
      for (const auto& [name, value] : row.items()) {
        to.push_back(name);
        read_value(value, masses.mass.emplace_back());
      }
      if (!masses.from.empty() && to != masses.to) throw NoRecord();
      masses.to = std::move(to);
      masses.from.push_back(from);
    }
    return masses;
  }

  static Sink read_sink(const OrderedJson& json) {
    Sink sink;
    sink.key = json.at("key");
    sink.mass = json.at("mass");
    if (json.contains("t")) sink.place = LatentCoord{json.at("t"), json.at("y"), json.at("x")};
    if (json.contains("text_index")) sink.text_index = json.at("text_index").get<int64_t>();
    if (json.contains("token")) sink.token = json.at("token").get<std::string>();
    return sink;
  }

  /// The first list of each depth tells the shape.
  static HeadArrayValues read_array(HeadArray which, const OrderedJson& json) {
    HeadArrayValues array{which, {}, {}};
    const OrderedJson* first = &json;
    for (size_t axis = 0; axis < info_of(which).axes.size(); ++axis) {
      array.shape.push_back(static_cast<int64_t>(first->size()));
      if (axis + 1 < info_of(which).axes.size()) first = &first->at(0);
    }
    flatten(json, array, 0);
    return array;
  }

  static void flatten(const OrderedJson& json, HeadArrayValues& array, size_t axis) {
    if (axis == array.shape.size()) {
      array.values.push_back(json.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                            : json.get<double>());
      return;
    }
    if (!json.is_array() || static_cast<int64_t>(json.size()) != array.shape[axis]) {
      throw NoRecord();
    }
    for (const OrderedJson& item : json) flatten(item, array, axis + 1);
  }

  const OrderedJson& json_;
};

}  // namespace

OrderedJson head_json(const HeadRecord& record) {
  const HeadMetrics& metrics = record.metrics;
  OrderedJson json = name_json(record.name);
  json["class"] = head_class_name(metrics.head_class);
  for (const HeadField& field : head_fields()) {
    json[std::string(field.name)] =
        std::visit([&](auto member) { return json_of(metrics.*member); }, field.member);
    if (const auto error = standard_error_of(metrics, field)) {
      json[field.error_name()] = json_of(*error);
    }
  }
  OrderedJson& scores = json["class_scores"] = OrderedJson::object();
  for (const ClassScoreField& score : class_score_fields()) {
    scores[std::string(score.name)] = json_of(metrics.class_scores.*score.member);
  }
  OrderedJson& sinks = json["sinks"] = OrderedJson::array();
  for (const Sink& sink : metrics.sinks) sinks.push_back(sink_json(sink));
  if (!metrics.segment_mass.from.empty()) {
    json["segment_mass"] = segment_mass_json(metrics.segment_mass);
  }
  for (const NearHead& near : record.nearest) {
    OrderedJson& other = json["nearest"].emplace_back(name_json(near.name));
    other["js"] = near.js;
  }
  for (const HeadArrayValues& array : record.arrays) {
    size_t value = 0;
    json[std::string(info_of(array.which).name)] = nested(array, 0, value);
  }
  return json;
}

std::optional<HeadRecord> parse_head_json(const OrderedJson& json) {
  try {
    return Reader(json).read();
  } catch (const OrderedJson::exception&) {
    return std::nullopt;
  } catch (const NoRecord&) {
    return std::nullopt;
  }
}

}  // namespace attnscope
