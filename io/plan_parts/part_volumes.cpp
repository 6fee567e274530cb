#include "io/plan_parts/part_volumes.h"

#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/export/format/export_manifest.h"
#include "io/files/json_types.h"
#include "io/hdf5/hdf5_reader.h"
#include "io/helper/ask_helper.h"

namespace attnscope {
namespace {

constexpr int64_t kMostVolumes = 1 << 20;
constexpr int64_t kMostWords = 1 << 24;
constexpr int64_t kMostChosen = 1 << 26;

constexpr const char* kTexts[] = {"model",     "capture", "query",  "domain",
                                  "weighting", "mean",    "backend"};
constexpr const char* kNumbers[] = {"step",     "layer",   "batch",   "head",
                                    "averaged", "query_t", "query_y", "query_x"};

/// Shape and place of a dataset of float32.
Json place_of(const Hdf5Reader& reader, const std::string& name) {
  const Hdf5Dataset d = reader.dataset(reader.root(), name);
  const Hdf5Type type(H5Dget_type(d.id()), reader.path(), name);
  if (H5Tequal(type.id(), H5T_IEEE_F32LE) <= 0) reader.bad(name, "is not float32");
  return {{"shape", reader.shape(d, name)}, {"place", reader.address(d, name)}};
}

bool is_there(const Hdf5Reader& reader, const std::string& name) {
  return H5Lexists(reader.root(), name.c_str(), H5P_DEFAULT) > 0;
}

Json read_strings(const Hdf5Reader& reader, const std::string& name, int64_t most) {
  const Hdf5Dataset d = reader.dataset(reader.root(), name);
  return reader.strings(d, name, most);
}

/// The datasets segment_NAME, in the order in which they were written.
Json read_segments(const Hdf5Reader& reader) {
  Json segments = Json::array();
  H5G_info_t info{};
  reader.check(H5Gget_info(reader.root(), &info), "the root");
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    char name[1024] = "";
    const ssize_t length = H5Lget_name_by_idx(reader.root(), ".", H5_INDEX_CRT_ORDER, H5_ITER_INC,
                                              i, name, sizeof name, H5P_DEFAULT);
    if (length <= 0 || length >= static_cast<ssize_t>(sizeof name)) {
      reader.bad("", "has a bad link");
    }
    const std::string text = name;
    if (text.rfind("segment_", 0) != 0) continue;
    Json segment = place_of(reader, text);
    segment["name"] = text.substr(8);
    segments.push_back(std::move(segment));
  }
  return segments;
}

Json read_volumes(const std::string& path, const Json&) {
  const Hdf5Session session;
  const Hdf5Reader reader(path);
  const hid_t root = reader.root();
  Json json;
  if (!reader.has_attribute(root, "format")) return json;
  json["format"] = reader.text(root, "format");
  if (json["format"] != "attnscope-volumes/1" || !reader.has_attribute(root, "shard")) return json;
  for (const char* name : {"shard", "plan_hash", "part"}) json[name] = reader.text(root, name);
  for (const char* name : kTexts) json[name] = reader.text(root, name);
  json["reverse"] = reader.integer(root, "reverse");
  json["not_recorded"] =
      reader.has_attribute(root, kNotRecordedName) ? reader.text(root, kNotRecordedName) : "";
  if (!is_there(reader, "item")) return json;
  for (const char* name : kNumbers) json[name] = reader.integers(root, name, kMostVolumes);
  for (const char* name : {"branch", "kind", "label", "block", "slot"}) {
    if (is_there(reader, name)) json[name] = read_strings(reader, name, kMostVolumes);
  }
  if (is_there(reader, "chunk")) json["chunk"] = reader.integers(root, "chunk", kMostVolumes);
  for (const ForwardFact& fact : kForwardFacts) {
    if (is_there(reader, fact.name)) {
      json[fact.name] = reader.integers(root, fact.name, kMostVolumes);
    }
  }
  if (is_there(reader, "volume")) json["volume"] = place_of(reader, "volume");
  if (is_there(reader, "text")) json["text"] = place_of(reader, "text");
  if (is_there(reader, "text_tokens")) {
    json["text_tokens"] = read_strings(reader, "text_tokens", kMostWords);
  }
  if (is_there(reader, "tokens")) {
    json["tokens"] = reader.integer_rows(root, "tokens", kMostChosen);
    json["chosen"] = reader.integers(root, "chosen", kMostChosen).size();
  }
  json["segments"] = read_segments(reader);
  return json;
}

/// The values of volume `item` of a dataset (item, …).
std::vector<float> read_item(const InputFile& file, const Json& dataset, size_t item,
                             size_t items) {
  const auto shape = dataset.at("shape").get<std::vector<int64_t>>();
  const auto count = checked_count(shape);
  if (!count || shape.empty() || static_cast<size_t>(shape[0]) != items ||
      *count > file.size() / 4) {
    throw file_error(file.path().string(), "", "its datasets do not fit each other");
  }
  const int64_t each = *count / shape[0];
  std::vector<float> values(static_cast<size_t>(each));
  file.read_at(dataset.at("place").get<int64_t>() + static_cast<int64_t>(item) * each * 4,
               std::as_writable_bytes(std::span(values)));
  return values;
}

/// Of the facts that some volumes lack, those that this one does; they count as 0 and "all".
void set_unrecorded(const std::string& names, QueryVolume& volume) {
  Unrecorded& own = volume.place.unrecorded;
  own = Unrecorded::parse(names);
  own.step &= volume.step == kNotRecorded;
  own.layer &= volume.layer == kNotRecorded && volume.place.block.empty();
  own.branch &= volume.branch.empty();
  if (own.step) volume.step = 0;
  if (own.layer) volume.layer = 0;
  if (own.branch) volume.branch = "all";
}

QueryVolume volume_of(const Json& json, size_t i, const InputFile& file) {
  const size_t items = json.at("step").size();
  QueryVolume volume;
  const auto number = [&](const char* name) { return json.at(name).at(i).get<int64_t>(); };
  const auto text = [&](const char* name) {
    return json.contains(name) ? json.at(name).at(i).get<std::string>() : std::string();
  };
  volume.step = number("step");
  volume.layer = number("layer");
  volume.batch = number("batch");
  volume.head = number("head");
  volume.averaged = number("averaged");
  volume.branch = text("branch");
  volume.kind = text("kind");
  volume.label = text("label");
  volume.place.block = text("block");
  volume.place.slot = text("slot");
  if (json.contains("chunk")) volume.place.chunk = number("chunk");
  for (const ForwardFact& fact : kForwardFacts) {
    if (json.contains(fact.name)) volume.place.forward.*fact.number = number(fact.name);
  }
  set_unrecorded(json.at("not_recorded").get<std::string>(), volume);
  if (number("query_t") >= 0) {
    volume.query = {number("query_t"), number("query_y"), number("query_x")};
  }
  if (json.contains("volume")) volume.video = read_item(file, json.at("volume"), i, items);
  if (json.contains("text")) volume.text = read_item(file, json.at("text"), i, items);
  for (const auto& segment : json.at("segments")) {
    volume.others.push_back(
        {segment.at("name").get<std::string>(), read_item(file, segment, i, items)});
  }
  return volume;
}

/// The words of the texts: one list, or one a volume.
void set_words(const Json& json, const std::string& file, QueryVolumes& volumes) {
  if (!json.contains("text_tokens") || volumes.volumes.empty()) return;
  const auto words = json.at("text_tokens").get<std::vector<std::string>>();
  const size_t length = volumes.volumes.front().text.size();
  volumes.token_lists.clear();
  for (size_t at = 0; length > 0 && at + length <= words.size(); at += length) {
    const auto first = words.begin() + static_cast<int64_t>(at);
    volumes.token_lists.emplace_back(first, first + static_cast<int64_t>(length));
  }
  if (volumes.token_lists.size() == 1) return;
  if (volumes.token_lists.size() != volumes.volumes.size()) {
    throw file_error(file, "text_tokens", "does not fit the volumes");
  }
  for (size_t i = 0; i < volumes.volumes.size(); ++i) volumes.volumes[i].tokens = i;
}

/// The chosen tokens of all volumes, or of each.
void set_chosen(const Json& json, const std::string& file, QueryVolumes& volumes) {
  if (!json.contains("tokens") || volumes.volumes.empty()) return;
  const auto tokens = json.at("tokens").get<std::vector<int64_t>>();
  const size_t lists =
      json.at("chosen").get<size_t>() == tokens.size() ? 1 : volumes.volumes.size();
  const size_t length = tokens.size() / lists;
  if (length * lists != tokens.size()) throw file_error(file, "tokens", "does not fit the volumes");
  for (size_t i = 0; i < volumes.volumes.size(); ++i) {
    const auto first = tokens.begin() + static_cast<int64_t>(lists == 1 ? 0 : i * length);
    std::vector<int64_t> own(first, first + static_cast<int64_t>(length));
    std::erase(own, -1);
    volumes.volumes[i].chosen = volumes.list_chosen(own);
  }
}

}  // namespace

const HelperQuestion kVolumesQuestion{"the volumes of a query", read_volumes};

bool is_volume_file(const std::filesystem::path& path) {
  if (!is_hdf5_file(path)) return false;
  const Json json = ask_helper(kVolumesQuestion, path.string());
  return json.is_object() && json.contains("format") && json["format"] == "attnscope-volumes/1";
}

PartVolumes read_part_volumes(const std::filesystem::path& path, InputSet& inputs) {
  const std::string name = path.string();
  const auto file = inputs.open(path);
  const Json json = ask_helper(kVolumesQuestion, name);
  if (!json.is_object() || !json.contains("shard")) {
    throw file_error(name, "", "is no part of a query (expected one that --shard wrote)");
  }
  try {
    const auto text = [&](const char* key) { return json.at(key).get<std::string>(); };
    PartVolumes part;
    part.facts = {path, parse_export_part(text("shard"), text("plan_hash"), text("part"), name),
                  text("backend")};
    QueryVolumes& volumes = part.volumes;
    volumes.model = text("model");
    volumes.capture = text("capture");
    volumes.query_text = text("query");
    volumes.domain = text("domain");
    volumes.weighting = text("weighting");
    volumes.mean = text("mean");
    volumes.reverse = json.at("reverse").get<int64_t>() != 0;
    if (!json.contains("step")) return part;
    if (json.contains("volume")) {
      const auto shape = json.at("volume").at("shape").get<std::vector<int64_t>>();
      if (shape.size() == 4) volumes.grid = {shape[1], shape[2], shape[3]};
    }
    for (size_t i = 0; i < json.at("step").size(); ++i) {
      volumes.volumes.push_back(volume_of(json, i, *file));
    }
    set_words(json, name, volumes);
    set_chosen(json, name, volumes);
    return part;
  } catch (const Json::exception&) {
    throw file_error(name, "", "does not say what a part of a query says");
  }
}

}  // namespace attnscope
