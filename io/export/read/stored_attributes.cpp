#include "io/export/read/stored_attributes.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "io/files/json_types.h"
#include "io/segments/head_name_json.h"
#include "io/segments/segment_json.h"

namespace attnscope {

namespace {

/// The sequence that grid and text tell of, as far as known; its last exported index is past − 1.
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

/// The sequence whose token map an attribute keeps.
TokenGrid stated_sequence(const Json& attributes, const char* name) {
  const Json list = Json::parse(attributes[name].get<std::string>(), nullptr, false);
  try {
    return TokenGrid::of_segments(parse_segments(list, nullptr).segments);
  } catch (const Error& error) {
    throw usage_error(std::string("attribute ") + name + ": " + error.what());
  }
}

}  // namespace

Json read_call_attributes(const Hdf5Reader& reader, hid_t group) {
  Json json;
  for (const char* fact : {"branch", "kind", "score", "mask", "model", "grid", "text"}) {
    json[fact] = reader.text(group, fact);
  }
  for (const char* map : {"queries", "keys"}) {
    if (reader.has_attribute(group, map)) json[map] = reader.text(group, map);
  }
  for (const char* fact : {"q_state", "sinks"}) {
    json[fact] = reader.has_attribute(group, fact) ? reader.text(group, fact) : "";
  }
  json["step"] = reader.integer(group, "step");
  json["layer"] = reader.integer(group, "layer");
  for (const char* fact : {"block", "slot"}) {
    // Pooled exports have a block of their own.
    json[std::string("model_") + fact] =
        reader.has_attribute(group, fact) ? reader.text(group, fact) : "";
  }
  json["chunk"] = reader.has_attribute(group, "chunk") ? reader.integer(group, "chunk") : kNoChunk;
  for (const ForwardFact& fact : kForwardFacts) {
    if (reader.has_attribute(group, fact.name)) json[fact.name] = reader.integer(group, fact.name);
  }
  // Files of older versions have 0 and "all".
  json["not_recorded"] =
      reader.has_attribute(group, kNotRecordedName) ? reader.text(group, kNotRecordedName) : "";
  return json;
}

Json read_groups(const std::string& path, const Json& groups,
                 Json (*read)(const Hdf5Reader&, const std::string&)) {
  const Hdf5Session session;
  const Hdf5Reader reader(path);
  Json all = Json::array();
  for (const Json& group : groups) all.push_back(read(reader, group.get<std::string>()));
  return all;
}

StoredFacts call_attributes(const Json& json) {
  StoredFacts facts;
  const auto unrecorded = Unrecorded::parse(json["not_recorded"].get<std::string>());
  facts.step = unrecorded.step ? 0 : json["step"].get<int64_t>();
  facts.layer = unrecorded.layer ? 0 : json["layer"].get<int64_t>();
  facts.branch = unrecorded.branch ? "all" : json["branch"].get<std::string>();
  facts.kind = json["kind"].get<std::string>();
  facts.score = json["score"].get<std::string>();
  facts.mask = json["mask"].get<std::string>();
  facts.sinks = json["sinks"].get<std::string>();
  facts.model = json["model"].get<std::string>();
  facts.q_state = json["q_state"].get<std::string>();
  facts.place = {json["model_block"].get<std::string>(), json["model_slot"].get<std::string>(),
                 json["chunk"].get<int64_t>(), unrecorded, parse_forward(json)};
  return facts;
}

void set_sequences(StoredFacts& facts, const Json& attributes, int64_t rows_end, int64_t keys_end) {
  if (attributes.contains("queries") && attributes.contains("keys")) {
    facts.query_tokens = stated_sequence(attributes, "queries");
    facts.key_tokens = stated_sequence(attributes, "keys");
    return;
  }
  const std::string grid = attributes["grid"].get<std::string>();
  const TextSpan text = parse_text_span(attributes["text"].get<std::string>());
  if (facts.kind == "cross") {
    // The grid belongs to the queries, the text to the keys.
    facts.query_tokens = sequence(grid, {}, rows_end);
    facts.key_tokens = sequence("none", text, keys_end);
  } else {
    facts.query_tokens = sequence(grid, text, std::max(rows_end, keys_end));
    facts.key_tokens = facts.query_tokens;
  }
}

}  // namespace attnscope
