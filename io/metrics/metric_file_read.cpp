#include "io/metrics/metric_file.h"

#include <array>
#include <optional>
#include <sstream>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/export/format/export_manifest.h"
#include "io/export/format/export_marks.h"
#include "io/export/read/stored_attributes.h"
#include "io/files/input_file.h"
#include "io/files/json_types.h"
#include "io/hdf5/hdf5_reader.h"
#include "io/helper/ask_helper.h"

namespace attnscope {
namespace {

constexpr int64_t kMostTexts = int64_t{1} << 26;
constexpr int64_t kMostPlaces = int64_t{1} << 20;

// ---- in the helper process

std::string member_name(const Hdf5Reader& reader, hid_t group, hsize_t number) {
  std::array<char, 1024> name{};
  const ssize_t length = H5Lget_name_by_idx(group, ".", H5_INDEX_CRT_ORDER, H5_ITER_INC, number,
                                            name.data(), name.size(), H5P_DEFAULT);
  if (length <= 0 || length >= static_cast<ssize_t>(name.size())) reader.bad("", "has a bad link");
  return name.data();
}

/// A group of numbers, while it is read.
struct OpenGroup {
  const Hdf5Reader& reader;
  hid_t id = 0;
  /// [batch, head]: a dataset of this shape has these axes where it does not name its own, as
  /// files of one capture did not before; empty: such a dataset is no variable.
  std::vector<int64_t> heads;
};

std::string axes_of(const OpenGroup& group, const Hdf5Dataset& d,
                    const std::vector<int64_t>& shape) {
  if (group.reader.has_attribute(d.id(), "axes")) return group.reader.text(d.id(), "axes");
  return !group.heads.empty() && shape == group.heads ? "batch head" : "";
}

/// Shape, type and place of a variable; null for what is none.
Json read_variable(const OpenGroup& group, const std::string& name) {
  const Hdf5Reader& reader = group.reader;
  const Hdf5Dataset d = reader.dataset(group.id, name);
  const std::vector<int64_t> shape = reader.shape(d, name);
  const std::string axes = axes_of(group, d, shape);
  if (axes.empty()) return nullptr;
  const bool named = reader.has_attribute(d.id(), "long_name");
  Json json{{"name", name},
            {"axes", axes},
            {"long_name", named ? reader.text(d.id(), "long_name") : ""},
            {"shape", shape}};
  const Hdf5Type type(H5Dget_type(d.id()), reader.path(), name);
  if (H5Tget_class(type.id()) == H5T_STRING) {
    json["type"] = MetricType::text;
    json["texts"] = reader.strings(d, name, kMostTexts);
    return json;
  }
  const std::pair<MetricType, hid_t> types[] = {{MetricType::f64, H5T_IEEE_F64LE},
                                                {MetricType::f32, H5T_IEEE_F32LE},
                                                {MetricType::i32, H5T_STD_I32LE}};
  for (const auto& [which, file_type] : types) {
    if (H5Tequal(type.id(), file_type) > 0) json["type"] = which;
  }
  if (!json.contains("type")) reader.bad(name, "has a type that no metric has");
  json["place"] = reader.address(d, name);
  return json;
}

void add_labels(const OpenGroup& group, const Json& variable, Json& json) {
  const Hdf5Reader& reader = group.reader;
  std::istringstream axes(variable["axes"].get<std::string>());
  for (std::string axis; axes >> axis;) {
    if (H5Lexists(group.id, axis.c_str(), H5P_DEFAULT) <= 0) continue;
    const Hdf5Dataset scale = reader.dataset(group.id, axis);
    if (reader.has_attribute(scale.id(), "labels")) {
      json[axis] = Json::parse(reader.text(scale.id(), "labels"));
    }
  }
}

/// The variables of a group and of those below it, whose names stand in front.
void add_variables(const OpenGroup& group, const std::string& before, Json& json) {
  const Hdf5Reader& reader = group.reader;
  H5G_info_t info{};
  reader.check(H5Gget_info(group.id, &info), "group");
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const std::string name = member_name(reader, group.id, i);
    H5L_info_t link{};
    reader.check(H5Lget_info(group.id, name.c_str(), &link, H5P_DEFAULT), name);
    if (link.type != H5L_TYPE_HARD) reader.bad(name, "is a link to somewhere else");
    H5O_info_t object{};
    reader.check(H5Oget_info_by_name(group.id, name.c_str(), &object, H5P_DEFAULT), name);
    if (object.type == H5O_TYPE_GROUP && before.empty()) {
      const Hdf5Group inner(H5Gopen2(group.id, name.c_str(), H5P_DEFAULT), reader.path(), name);
      add_variables({reader, inner.id(), {}}, name + "/", json);
      continue;
    }
    if (object.type != H5O_TYPE_DATASET) continue;
    Json variable = read_variable(group, name);
    if (variable.is_null()) continue;
    variable["labels"] = Json::object();
    add_labels(group, variable, variable["labels"]);
    variable["name"] = before + name;
    json.push_back(std::move(variable));
  }
}

Json read_group(const OpenGroup& group, const std::string& name, bool with_runs) {
  const Hdf5Reader& reader = group.reader;
  const auto batch = reader.integers(group.id, "batch", kMostPlaces);
  const auto heads = reader.integers(group.id, "head", kMostPlaces);
  Json json{{"name", name}, {"batch", batch}, {"heads", heads}, {"variables", Json::array()}};
  if (with_runs) {
    json["call"] = reader.text(group.id, "part_call");
    add_variables(group, "", json["variables"]);
  } else {
    json["facts"] = read_call_attributes(reader, group.id);
    add_variables({reader, group.id, {std::ssize(batch), std::ssize(heads)}}, "",
                  json["variables"]);
  }
  return json;
}

Json read_metrics(const std::string& path, const Json& asked) {
  const Hdf5Session session;
  const Hdf5Reader reader(path);
  const hid_t root = reader.root();
  const bool is_stats = reader.has_attribute(root, "product") &&
                        reader.text(root, "product") == "stats" &&
                        H5Lexists(root, "calls", H5P_DEFAULT) > 0;
  const bool with_runs = is_stats && H5Lexists(root, "runs", H5P_DEFAULT) > 0;
  Json json{{"stats", is_stats}, {"metrics", with_runs}};
  if (!is_stats || asked["what"] == "kind") return json;
  if (with_runs) {
    const Hdf5Group runs(H5Gopen2(root, "runs", H5P_DEFAULT), path, "runs");
    json["runs"] = reader.strings(reader.dataset(runs.id(), "facts"), "runs/facts", kMostPlaces);
  }
  if (asked["what"] == "runs") return json;
  const Hdf5Group calls(H5Gopen2(root, "calls", H5P_DEFAULT), path, "calls");
  H5G_info_t info{};
  reader.check(H5Gget_info(calls.id(), &info), "calls");
  Json& groups = json["groups"] = Json::array();
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const std::string name = member_name(reader, calls.id(), i);
    const Hdf5Group group(H5Gopen2(calls.id(), name.c_str(), H5P_DEFAULT), path, name);
    groups.push_back(read_group({reader, group.id(), {}}, name, with_runs));
  }
  return json;
}

// ---- in this one

/// Makes groups of what the helper said of the file, which may be damaged.
class MetricFileReader {
 public:
  /// `runs`: nothing where the numbers are a capture's own.
  MetricFileReader(const std::filesystem::path& path, MetricPart part, std::optional<size_t> runs)
      : name_(path.string()), file_(path), part_(part), runs_(runs) {}

  MetricGroup group(const Json& json) {
    const auto where = json.at("name").get<std::string>();
    MetricGroup group;
    if (runs_) {
      group.call = parse_call_description(OrderedJson::parse(json.at("call").get<std::string>()));
    } else {
      const StoredFacts facts = call_attributes(json.at("facts"));
      group.call.name = {facts.step, facts.layer, facts.branch, facts.kind, 0, 0, facts.place};
      group.call.model = facts.model;
    }
    json.at("batch").get_to(group.batch);
    json.at("heads").get_to(group.heads);
    for (const auto* list : {&group.batch, &group.heads}) {
      for (size_t i = 1; i < list->size(); ++i) {
        if ((*list)[i - 1] >= (*list)[i]) fail(where, "its indices do not ascend");
      }
    }
    for (const Json& variable : json.at("variables")) {
      group.variables.push_back(read(variable, group, where));
    }
    const MetricVariable* const measured = group.find(kMeasured);
    if (!runs_) return group;
    if (measured == nullptr || measured->type() != MetricType::i32 || !measured->of_heads ||
        measured->cell() != 1) {
      fail(where, "does not tell which heads it has");
    }
    return group;
  }

 private:
  [[noreturn]] void fail(const std::string& where, const std::string& what) const {
    throw file_error(name_, one_line(where), what);
  }

  MetricVariable read(const Json& json, const MetricGroup& group, const std::string& where) const {
    MetricVariable variable;
    json.at("name").get_to(variable.name);
    json.at("long_name").get_to(variable.long_name);
    json.at("labels").get_to(variable.labels);
    std::istringstream words(json.at("axes").get<std::string>());
    for (std::string axis; words >> axis;) variable.axes.push_back(axis);
    json.at("shape").get_to(variable.shape);
    std::vector<std::string> front{"batch", "head"};
    std::vector<int64_t> extents{std::ssize(group.batch), std::ssize(group.heads)};
    if (runs_) {
      front.insert(front.begin(), "run");
      extents.insert(extents.begin(), static_cast<int64_t>(*runs_));
    }
    variable.of_heads = !runs_ || variable.axes.size() > 1;
    const size_t own = variable.of_heads ? front.size() : 1;
    for (size_t i = 0; i < own; ++i) {
      if (variable.axes.size() != variable.shape.size() || i >= variable.axes.size() ||
          variable.axes[i] != front[i] || variable.shape[i] != extents[i]) {
        fail(where, variable.name + " does not fit the runs and heads");
      }
    }
    const auto count = checked_count(variable.shape);
    if (!count) fail(where, variable.name + " is too large");
    variable.axes.erase(variable.axes.begin(), variable.axes.begin() + static_cast<int64_t>(own));
    variable.shape.erase(variable.shape.begin(),
                         variable.shape.begin() + static_cast<int64_t>(own));
    read_values(json, *count, where, variable);
    return variable;
  }

  /// Are its values asked for?
  bool is_wanted(const MetricVariable& variable) const {
    if (part_ != MetricPart::numbers) return part_ == MetricPart::everything;
    return variable.of_heads &&
           (variable.shape.empty() || variable.axes == std::vector<std::string>{"sparse_mask"});
  }

  void read_values(const Json& json, int64_t count, const std::string& where,
                   MetricVariable& variable) const {
    switch (json.at("type").get<MetricType>()) {
      case MetricType::f64:
        variable.values = numbers<double>(json, variable, count, where);
        return;
      case MetricType::f32:
        variable.values = numbers<float>(json, variable, count, where);
        return;
      case MetricType::i32:
        variable.values = numbers<int32_t>(json, variable, count, where);
        return;
      case MetricType::text:
        break;
    }
    auto texts = json.at("texts").get<std::vector<std::string>>();
    if (std::ssize(texts) != count) fail(where, variable.name + " has another length");
    if (!is_wanted(variable)) texts.clear();
    variable.values = std::move(texts);
  }

  template <typename Value>
  MetricValues numbers(const Json& json, const MetricVariable& variable, int64_t count,
                       const std::string& where) const {
    if (!is_wanted(variable)) return std::vector<Value>();
    if (count > file_.size() / static_cast<int64_t>(sizeof(Value))) {
      fail(where, "has longer lists than the file has bytes");
    }
    std::vector<Value> values(static_cast<size_t>(count));
    file_.read_at(json.at("place").get<int64_t>(), std::as_writable_bytes(std::span(values)));
    return values;
  }

  const std::string name_;
  const InputFile file_;
  const MetricPart part_;
  const std::optional<size_t> runs_;
};

void require_sound(const ExportManifest& stored, const std::filesystem::path& path) {
  const PosixFile file(path, PosixFile::Mode::read_only);
  require_sound_structure(stored, file);
  if (is_marked_complete(stored, file)) return;
  throw file_error(path.string(), "", "is not complete");
}

}  // namespace

const HelperQuestion kMetricsQuestion{"numbers of heads", read_metrics};

bool is_metric_file(const std::filesystem::path& path) {
  if (!is_hdf5_file(path)) return false;
  return ask_helper(kMetricsQuestion, path.string(), {{"what", "kind"}}).at("metrics").get<bool>();
}

RunTable read_metric_file(const std::filesystem::path& path, MetricPart part) {
  const RunTable table = read_stats_file(path, part);
  if (!table.runs.empty()) return table;
  throw file_error(path.string(), "", "holds no metrics of several runs");
}

RunTable read_stats_file(const std::filesystem::path& path, MetricPart part) {
  const std::string name = path.string();
  const ExportManifest stored = read_manifest(path);
  if (stored.product != "stats") {
    throw usage_error(name + ": is an export of " + stored.product +
                      ", not of numbers (expected stats)");
  }
  require_sound(stored, path);
  const Json json =
      ask_helper(kMetricsQuestion, name, {{"what", part == MetricPart::runs ? "runs" : "groups"}});
  if (!json.at("stats").get<bool>()) throw file_error(name, "", "holds no numbers of heads");
  try {
    RunTable table;
    table.capture = stored.capture;
    table.options = OrderedJson::parse(stored.options);
    const bool with_runs = json.at("metrics").get<bool>();
    if (with_runs) {
      for (const auto& run : json.at("runs")) {
        table.runs.push_back(MetricRun::parse(OrderedJson::parse(run.get<std::string>())));
      }
    }
    if (part == MetricPart::runs) return table;
    MetricFileReader reader(path, part,
                            with_runs ? std::optional(table.runs.size()) : std::nullopt);
    for (const auto& group : json.at("groups")) table.groups.push_back(reader.group(group));
    return table;
  } catch (const Json::exception&) {
    throw file_error(name, "", "does not say what a file of metrics says");
  }
}

}  // namespace attnscope
