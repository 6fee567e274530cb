#include "io/stored_facts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "io/child_task.h"
#include "io/hdf5_reader.h"

namespace attnscope {
namespace {

using Json = nlohmann::json;

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

std::string read_all(const std::string& path, const std::vector<StoredGroup>& groups) {
  const Hdf5Session session;
  const Hdf5Reader reader(path);
  Json all = Json::array();
  for (const StoredGroup& g : groups) {
    const std::string name = "calls/" + g.name;
    const Hdf5Group group(H5Gopen2(reader.root(), name.c_str(), H5P_DEFAULT), path, name);
    Json json;
    for (const char* fact : {"branch", "kind", "score", "model", "grid", "text"}) {
      json[fact] = reader.text(group.id(), fact);
    }
    json["step"] = reader.integer(group.id(), "step");
    json["layer"] = reader.integer(group.id(), "layer");
    json["query"] = runs_of(reader, group.id(), "query");
    json["key"] = runs_of(reader, group.id(), "key");
    all.push_back(std::move(json));
  }
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// What is known of a sequence whose last exported index is past − 1.
TokenGrid sequence(const std::string& grid_text, const TextSpan& text, int64_t past) {
  if (text.place == TextPlace::all) return TokenGrid::text_only(std::max(past, text.count));
  if (grid_text == "none") {
    // Where a text at the end begins, a crop does not tell.
    const bool known = text.place == TextPlace::start && past > text.count;
    return known ? TokenGrid::spans(past, text.count, text.place) : TokenGrid::unknown(past);
  }
  const std::array<int64_t, 3> grid = parse_grid(grid_text);
  return TokenGrid::video(grid[0] * grid[1] * grid[2] + text.count, grid, text.count, text.place);
}

StoredFacts parse(const Json& json, const StoredGroup& group, const std::string& path) {
  StoredFacts facts;
  facts.step = json["step"].get<int64_t>();
  facts.layer = json["layer"].get<int64_t>();
  facts.branch = json["branch"].get<std::string>();
  facts.kind = json["kind"].get<std::string>();
  facts.score = json["score"].get<std::string>();
  facts.model = json["model"].get<std::string>();
  for (const Json& run : json["query"]) {
    const auto first = run[0].get<int64_t>();
    for (int64_t i = 0; i < run[1].get<int64_t>(); ++i) facts.queries.push_back(first + i);
  }
  const Json& keys = json["key"].front();
  facts.keys = {keys[0].get<int64_t>(), keys[0].get<int64_t>() + keys[1].get<int64_t>()};
  const bool cross = facts.kind == "cross";
  const std::string grid = json["grid"].get<std::string>();
  const TextSpan text = parse_text_span(json["text"].get<std::string>());
  const int64_t rows = facts.queries.back() + 1;
  if (cross) {
    // The grid belongs to the queries, the text to the keys.
    facts.query_tokens = sequence(grid, {}, rows);
    facts.key_tokens = sequence("none", text, facts.keys.end);
  } else {
    facts.query_tokens = sequence(grid, text, std::max(rows, facts.keys.end));
    facts.key_tokens = facts.query_tokens;
  }
  const bool fit =
      json["key"].size() == 1 && static_cast<int64_t>(facts.queries.size()) == group.grid.rows &&
      (group.entries_name.empty() || group.entries_name == "output" ||
       facts.keys.size() == group.grid.cols) &&
      rows <= facts.query_tokens.tokens() && facts.keys.end <= facts.key_tokens.tokens();
  if (!fit) throw file_error(path, group.name, "its coordinates do not fit its datasets");
  return facts;
}

}  // namespace

std::vector<StoredFacts> read_stored_facts(const std::filesystem::path& path,
                                           const std::vector<StoredGroup>& groups) {
  const std::string name = path.string();
  const Json all = Json::parse(run_in_child(name, [&] { return read_all(name, groups); }));
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
