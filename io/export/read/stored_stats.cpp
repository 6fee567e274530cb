#include "io/export/read/stored_stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "io/export/format/export_marks.h"
#include "io/export/read/stored_attributes.h"
#include "io/files/json_types.h"
#include "io/files/posix_file.h"
#include "io/helper/ask_helper.h"

namespace attnscope {
namespace {

/// Numbers of runs, (run, heads), as their means; NaN where no run has one.
std::vector<double> means_of(const std::vector<double>& values, size_t heads) {
  std::vector<double> means(heads, std::numeric_limits<double>::quiet_NaN());
  for (size_t head = 0; head < heads; ++head) {
    double sum = 0;
    int64_t count = 0;
    for (size_t at = head; at < values.size(); at += heads) {
      if (std::isnan(values[at])) continue;
      sum += values[at];
      ++count;
    }
    if (count > 0) means[head] = sum / static_cast<double>(count);
  }
  return means;
}

/// The numbers of a dataset (batch, head), or the means of one (run, batch, head); null where it is
/// none of that kind. `runs` is 0 where there are none.
Json read_numbers(const Hdf5Reader& reader, hid_t group, const char* name, int64_t runs,
                  int64_t batch, int64_t heads) {
  if (H5Oexists_by_name(group, name, H5P_DEFAULT) <= 0) return nullptr;
  H5O_info_t info{};
  reader.check(H5Oget_info_by_name(group, name, &info, H5P_DEFAULT), name);
  if (info.type != H5O_TYPE_DATASET) return nullptr;
  const Hdf5Dataset d = reader.dataset(group, name);
  const Hdf5Type type(H5Dget_type(d.id()), reader.path(), name);
  if (H5Tget_class(type.id()) != H5T_FLOAT) return nullptr;
  const std::vector<int64_t> shape = reader.shape(d, name);
  const std::vector<int64_t> expected =
      runs > 0 ? std::vector<int64_t>{runs, batch, heads} : std::vector<int64_t>{batch, heads};
  if (shape != expected) return nullptr;
  reader.address(d, name);
  std::vector<double> values(static_cast<size_t>(std::max<int64_t>(1, runs) * batch * heads));
  reader.check(H5Dread(d.id(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
               name);
  // NaN becomes null.
  if (runs > 0) return means_of(values, static_cast<size_t>(batch * heads));
  return values;
}

Json read_stats_group(const Hdf5Reader& reader, const std::string& name) {
  const std::string where = "calls/" + name;
  const Hdf5Group group(H5Gopen2(reader.root(), where.c_str(), H5P_DEFAULT), reader.path(), where);
  Json json = read_call_attributes(reader, group.id());
  const auto batch = reader.integers(group.id(), "batch", kMostIndices);
  const auto heads = reader.integers(group.id(), "head", kMostIndices);
  json["batch"] = batch;
  json["heads"] = heads;
  int64_t runs = 0;
  if (H5Lexists(group.id(), "run", H5P_DEFAULT) > 0) {
    runs = std::ssize(reader.integers(group.id(), "run", kMostIndices));
  }
  json["runs"] = runs;
  const std::vector<int64_t> heads_shape{std::ssize(batch), std::ssize(heads)};
  json["classes"] = Json::array();
  if (H5Lexists(group.id(), "class", H5P_DEFAULT) > 0) {
    const Hdf5Dataset classes = reader.dataset(group.id(), "class");
    if (reader.shape(classes, "class") == heads_shape) {
      json["classes"] = reader.strings(classes, "class", kMostIndices);
    }
  }
  json["numbers"] = Json::object();
  H5G_info_t info{};
  reader.check(H5Gget_info(group.id(), &info), where);
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    char member[256] = "";
    const ssize_t length = H5Lget_name_by_idx(group.id(), ".", H5_INDEX_NAME, H5_ITER_INC, i,
                                              member, sizeof member, H5P_DEFAULT);
    if (length <= 0 || length >= static_cast<ssize_t>(sizeof member)) {
      reader.bad(where, "has a bad link");
    }
    Json numbers =
        read_numbers(reader, group.id(), member, runs, std::ssize(batch), std::ssize(heads));
    if (!numbers.is_null()) json["numbers"][member] = std::move(numbers);
  }
  return json;
}

StoredStatsGroup parse(const Json& json) {
  StoredStatsGroup group;
  group.facts = call_attributes(json);
  group.batch = json["batch"].get<std::vector<int64_t>>();
  group.heads = json["heads"].get<std::vector<int64_t>>();
  group.runs = json["runs"].get<int64_t>();
  group.classes = json["classes"].get<std::vector<std::string>>();
  for (const auto& [name, numbers] : json["numbers"].items()) {
    std::vector<double>& values = group.numbers[name];
    for (const Json& number : numbers) {
      values.push_back(number.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                        : number.get<double>());
    }
  }
  return group;
}

}  // namespace

const HelperQuestion kStatsQuestion{"the numbers of an export's calls",
                                    [](const std::string& path, const Json& groups) {
                                      return read_groups(path, groups, read_stats_group);
                                    }};

StoredStats read_stored_stats(const std::filesystem::path& path) {
  const std::string name = path.string();
  StoredStats stats;
  stats.stored = read_manifest(path);
  if (stats.stored.product != "stats") {
    throw usage_error(name + ": is an export of " + stats.stored.product +
                      ", not of numbers (expected stats)");
  }
  require_sound_structure(stats.stored, PosixFile(path, PosixFile::Mode::read_only));
  const Json all = ask_helper(kStatsQuestion, name, stats.stored.plain_groups);
  for (const Json& group : all) stats.groups.push_back(parse(group));
  return stats;
}

}  // namespace attnscope
