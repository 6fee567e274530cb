#include "io/export/read/stored_facts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "io/export/read/stored_attributes.h"
#include "io/files/json_types.h"
#include "io/hdf5/hdf5_reader.h"
#include "io/helper/ask_helper.h"

namespace attnscope {
namespace {

/// A sequence is never longer: its list takes 2 GiB.
constexpr int64_t kMaxTokens = int64_t{1} << 26;

/// Ascending indices as runs [first, count].
Json runs_of(const Hdf5Reader& reader, hid_t group, const std::string& name) {
  const std::vector<int64_t> indices = reader.integers(group, name, kMaxTokens);
  Json runs = Json::array();
  for (size_t i = 0; i < indices.size();) {
    size_t end = i + 1;
    while (end < indices.size() && indices[end] == indices[end - 1] + 1) ++end;
    if (indices[i] < 0 || (end < indices.size() && indices[end] <= indices[end - 1])) {
      reader.bad(name, "does not ascend");
    }
    runs.push_back({indices[i], end - i});
    i = end;
  }
  return runs;
}

Json read_all(const std::string& path, const Json& names) {
  const Hdf5Session session;
  const Hdf5Reader reader(path);
  Json all = Json::array();
  for (const Json& call : names) {
    const std::string name = "calls/" + call.get<std::string>();
    const Hdf5Group group(H5Gopen2(reader.root(), name.c_str(), H5P_DEFAULT), path, name);
    Json json = read_call_attributes(reader, group.id());
    json["query"] = runs_of(reader, group.id(), "query");
    json["key"] = runs_of(reader, group.id(), "key");
    all.push_back(std::move(json));
  }
  return all;
}

/// The attributes of a group; null where it is a link to another file, or lacks one of them.
Json read_attributes_alone(const Hdf5Reader& reader, const std::string& name) {
  const std::string where = "calls/" + name;
  H5L_info_t link{};
  reader.check(H5Lget_info(reader.root(), where.c_str(), &link, H5P_DEFAULT), where);
  if (link.type != H5L_TYPE_HARD) return nullptr;
  const Hdf5Group group(H5Gopen2(reader.root(), where.c_str(), H5P_DEFAULT), reader.path(), where);
  try {
    return read_call_attributes(reader, group.id());
  } catch (const Error&) {
    return nullptr;
  }
}

Json read_all_attributes(const std::string& path, const Json& names) {
  return read_groups(path, names, read_attributes_alone);
}

StoredFacts parse(const Json& json, const StoredGroup& group, const std::string& path) {
  StoredFacts facts = call_attributes(json);
  for (const Json& run : json["query"]) {
    const auto first = run[0].get<int64_t>();
    for (int64_t i = 0; i < run[1].get<int64_t>(); ++i) facts.queries.push_back(first + i);
  }
  const Json& keys = json["key"].front();
  facts.keys = {keys[0].get<int64_t>(), keys[0].get<int64_t>() + keys[1].get<int64_t>()};
  const int64_t rows = facts.queries.back() + 1;
  set_sequences(facts, json, rows, facts.keys.end);
  const bool fit =
      json["key"].size() == 1 && static_cast<int64_t>(facts.queries.size()) == group.grid.rows &&
      (group.entries_name.empty() || group.entries_name == "output" ||
       facts.keys.size() == group.grid.cols) &&
      rows <= facts.query_tokens.tokens() && facts.keys.end <= facts.key_tokens.tokens();
  if (!fit) throw file_error(path, group.name, "its coordinates do not fit its datasets");
  return facts;
}

}  // namespace

const HelperQuestion kFactsQuestion{"the facts of an export's calls", read_all};

const HelperQuestion kCallFactsQuestion{"the calls of an export", read_all_attributes};

std::vector<std::optional<StoredFacts>> read_call_facts(const std::filesystem::path& path,
                                                        const std::vector<std::string>& groups) {
  std::vector<std::optional<StoredFacts>> facts;
  for (const Json& json : ask_helper(kCallFactsQuestion, path.string(), Json(groups))) {
    facts.push_back(json.is_null() ? std::nullopt : std::optional(call_attributes(json)));
  }
  return facts;
}

std::vector<StoredFacts> read_stored_facts(const std::filesystem::path& path,
                                           const std::vector<StoredGroup>& groups) {
  const std::string name = path.string();
  Json names = Json::array();
  for (const StoredGroup& group : groups) names.push_back(group.name);
  const Json all = ask_helper(kFactsQuestion, name, names);
  std::vector<StoredFacts> facts;
  for (size_t g = 0; g < groups.size(); ++g) {
    try {
      facts.push_back(parse(all[g], groups[g], name));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::usage) throw;
      // It is the file that is wrong, not what was asked for.
      throw file_error(name, groups[g].name, error.what());
    }
  }
  return facts;
}

}  // namespace attnscope
