#include "io/export/read/part_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <tuple>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/export/format/export_marks.h"
#include "io/files/checksum.h"
#include "io/files/json_types.h"
#include "io/hdf5/hdf5_reader.h"
#include "io/helper/ask_helper.h"

namespace attnscope {
namespace {

constexpr const char* kAxisLists[] = {"", "_t", "_y", "_x"};
constexpr int64_t kMostRecords = 1 << 20;

/// Where the lists of an axis stand.
Json read_axis_places(const Hdf5Reader& reader, hid_t group, const std::string& axis) {
  Json json;
  std::vector<int64_t> extent;
  for (const char* suffix : kAxisLists) {
    const std::string name = axis + suffix;
    const Hdf5Dataset d = reader.dataset(group, name);
    const Hdf5Type type(H5Dget_type(d.id()), reader.path(), name);
    const auto shape = reader.shape(d, name);
    if (extent.empty()) extent = shape;
    if (shape.size() != 1 || shape != extent || H5Tequal(type.id(), H5T_STD_I32LE) <= 0) {
      reader.bad(name, "is no list of the axis");
    }
    json["lists"].push_back(reader.address(d, name));
  }
  const std::string name = axis + "_segment";
  const Hdf5Dataset d = reader.dataset(group, name);
  const auto shape = reader.shape(d, name);
  if (shape.empty() || shape.size() > 2 || shape.back() != extent[0]) {
    reader.bad(name, "is no list of the axis");
  }
  json["count"] = extent[0];
  json["segments"] = reader.address(d, name);
  json["segment_bytes"] = shape.size() == 2 ? shape[0] * shape[1] : shape[0];
  if (reader.has_attribute(d.id(), "segment_names")) {
    json["names"] = reader.text(d.id(), "segment_names");
  }
  return json;
}

/// One level of a pooled group.
Json read_level(const Hdf5Reader& reader, hid_t group) {
  Json json;
  for (const char* name : {"weights_max", "weights_mean"}) {
    const Hdf5Dataset d = reader.dataset(group, name);
    const Hdf5Type type(H5Dget_type(d.id()), reader.path(), name);
    const auto shape = reader.shape(d, name);
    if (shape.size() != 4 || H5Tequal(type.id(), H5T_IEEE_F32LE) <= 0 ||
        (json.contains("shape") && json["shape"] != shape)) {
      reader.bad(name, "is no map of blocks");
    }
    json["shape"] = shape;
    json["block"] = reader.integer(d.id(), "block");
    json["places"].push_back(reader.address(d, name));
  }
  json["first"] = {reader.integers(group, "query_block", kMostRecords).front(),
                   reader.integers(group, "key_block", kMostRecords).front()};
  return json;
}

/// The levels of a pooled group, from the finest.
Json read_levels(const Hdf5Reader& reader, hid_t group) {
  Json levels = Json::array();
  if (H5Lexists(group, "weights_max", H5P_DEFAULT) > 0) {
    levels.push_back(read_level(reader, group));
    return levels;
  }
  H5G_info_t info{};
  reader.check(H5Gget_info(group, &info), "levels");
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    char member[64] = "";
    // Longer names are none of a level's.
    const ssize_t length = H5Lget_name_by_idx(group, ".", H5_INDEX_CRT_ORDER, H5_ITER_INC, i,
                                              member, sizeof member, H5P_DEFAULT);
    const std::string level = member;
    if (length <= 0 || level.rfind("level_", 0) != 0) continue;
    const Hdf5Group inner(H5Gopen2(group, level.c_str(), H5P_DEFAULT), reader.path(), level);
    levels.push_back(read_level(reader, inner.id()));
  }
  return levels;
}

/// Null where it is a link to a shard.
Json read_part_group(const Hdf5Reader& reader, const std::string& name) {
  const std::string where = "calls/" + name;
  H5L_info_t link{};
  reader.check(H5Lget_info(reader.root(), where.c_str(), &link, H5P_DEFAULT), where);
  if (link.type != H5L_TYPE_HARD) return nullptr;
  const Hdf5Group group(H5Gopen2(reader.root(), where.c_str(), H5P_DEFAULT), reader.path(), where);
  Json json{{"call", reader.text(group.id(), "part_call")}};
  json["batch"] = reader.integers(group.id(), "batch", kMostRecords);
  json["heads"] = reader.integers(group.id(), "head", kMostRecords);
  json["levels"] = read_levels(reader, group.id());
  if (H5Lexists(group.id(), "query_t", H5P_DEFAULT) <= 0) return json;
  json["has_lse"] = H5Lexists(group.id(), "lse", H5P_DEFAULT) > 0;
  json["query"] = read_axis_places(reader, group.id(), "query");
  json["key"] = read_axis_places(reader, group.id(), "key");
  if (H5Lexists(group.id(), "sinks", H5P_DEFAULT) > 0) {
    const Hdf5Dataset d = reader.dataset(group.id(), "sinks");
    const Hdf5Type type(H5Dget_type(d.id()), reader.path(), "sinks");
    if (H5Tequal(type.id(), H5T_IEEE_F32LE) <= 0) reader.bad("sinks", "is no list of logits");
    json["sinks_shape"] = reader.shape(d, "sinks");
    json["sinks"] = reader.address(d, "sinks");
  }
  if (H5Lexists(group.id(), "text_tokens", H5P_DEFAULT) > 0) {
    const Hdf5Dataset d = reader.dataset(group.id(), "text_tokens");
    json["text_shape"] = reader.shape(d, "text_tokens");
    json["text"] = reader.strings(d, "text_tokens", kMostRecords);
  }
  return json;
}

Json read_part(const std::string& path, const Json& names) {
  const Hdf5Session session;
  const Hdf5Reader reader(path);
  Json json{{"groups", Json::array()}};
  for (const auto& name : names) {
    json["groups"].push_back(read_part_group(reader, name.get<std::string>()));
  }
  if (H5Lexists(reader.root(), "part_records", H5P_DEFAULT) > 0) {
    const Hdf5Dataset d = reader.dataset(reader.root(), "part_records");
    json["records"] = reader.strings(d, "part_records", kMostRecords);
  }
  return json;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

void require_whole(const ExportManifest& stored, const std::filesystem::path& path) {
  const std::string name = path.string();
  if (!stored.part) {
    throw file_error(name, "", "is no part of an export (expected one that --shard wrote)");
  }
  const PosixFile file(path, PosixFile::Mode::read_only);
  require_sound_structure(stored, file);
  if (!is_marked_complete(stored, file)) {
    throw file_error(name, "", "is not complete: --resume goes on with its run");
  }
}

}  // namespace

const HelperQuestion kPartQuestion{"the groups of a part of an export", read_part};

PartFile::PartFile(const std::filesystem::path& path, InputSet& inputs)
    : path_(path), file_(inputs.open(path)), stored_(read_manifest(path)) {
  require_whole(stored_, path);
  for (const StoredGroup& group : stored_.groups) groups_.push_back(group.name);
  for (const Shard& shard : stored_.shards) groups_.push_back(shard.name);
  groups_.insert(groups_.end(), stored_.plain_groups.begin(), stored_.plain_groups.end());
  read_groups();
}

void PartFile::read_groups() {
  const std::string name = path_.string();
  const Json json = ask_helper(kPartQuestion, name, groups_);
  try {
    for (const auto& group : json.at("groups")) {
      if (group.is_null() && !stored_.shards.empty()) return groups_.clear();
      calls_.push_back(
          parse_call_description(OrderedJson::parse(group.at("call").get<std::string>())));
      group.at("batch").get_to(batch_.emplace_back());
      group.at("heads").get_to(heads_.emplace_back());
      blocks_.push_back(parse_blocks(group.at("levels")));
      if (!group.contains("query")) continue;
      GroupLists lists;
      for (const auto& [axis, places, count] :
           {std::tuple("query", &lists.query, &lists.extents.rows),
            {"key", &lists.key, &lists.extents.keys}}) {
        const auto& found = group.at(axis);
        found.at("lists").get_to(places->lists);
        found.at("segments").get_to(places->segments);
        found.at("segment_bytes").get_to(places->segment_bytes);
        found.at("count").get_to(*count);
        if (found.contains("names")) {
          places->named_segments = words_of(found.at("names").get<std::string>());
        }
      }
      group.at("has_lse").get_to(lists.extents.has_lse);
      if (group.contains("sinks")) {
        group.at("sinks").get_to(lists.sinks);
        group.at("sinks_shape").get_to(lists.sinks_shape);
        const std::vector<int64_t> heads{std::ssize(batch_.back()), std::ssize(heads_.back())};
        std::vector<int64_t> rows = heads;
        rows.push_back(lists.extents.rows);
        if (lists.sinks_shape != heads && lists.sinks_shape != rows) {
          throw file_error(name, "sinks", "fits no heads of its group");
        }
      }
      if (group.contains("text")) {
        group.at("text").get_to(lists.text);
        const auto shape = group.at("text_shape").get<std::vector<int64_t>>();
        lists.text_lists = shape.size() == 2 ? shape[0] : 1;
      }
      lists_.push_back(std::move(lists));
    }
    if (json.contains("records")) json.at("records").get_to(records_);
  } catch (const Json::exception&) {
    throw file_error(name, "calls", "does not say what a part of an export says");
  }
}

/// Of the group whose batch items and heads were read last.
PartFile::Blocks PartFile::parse_blocks(const Json& levels) const {
  Blocks blocks;
  for (const auto& level : levels) {
    const auto shape = level.at("shape").get<std::vector<int64_t>>();
    const auto block = level.at("block").get<int64_t>();
    const auto count = checked_count(shape);
    const bool fits = count && *count > 0 && *count <= file_->size() / 4 && shape.size() == 4 &&
                      shape[0] == std::ssize(batch_.back()) &&
                      shape[1] == std::ssize(heads_.back()) && block > 0 && block <= INT32_MAX &&
                      shape[2] <= INT32_MAX / block + 1 && shape[3] <= INT32_MAX / block + 1;
    if (!fits) throw file_error(path_.string(), "calls", "has maps of blocks that fit no heads");
    blocks.levels.push_back({block, shape[2], shape[3], level.at("places").at(0).get<int64_t>(),
                             level.at("places").at(1).get<int64_t>()});
    blocks.first_row = level.at("first").at(0).get<int64_t>();
    blocks.first_key = level.at("first").at(1).get<int64_t>();
  }
  return blocks;
}

AxisDescription PartFile::read_axis(const AxisPlaces& places, int64_t count) const {
  AxisDescription axis;
  // A damaged extent is an error before it is an allocation.
  if (count < 1 || count > file_->size() / 4 || places.segment_bytes < count ||
      places.segment_bytes > file_->size()) {
    throw file_error(path_.string(), "calls", "has longer lists than the file has bytes");
  }
  std::vector<int32_t>* const lists[] = {&axis.indices, &axis.t, &axis.y, &axis.x};
  for (size_t i = 0; i < places.lists.size(); ++i) {
    lists[i]->resize(static_cast<size_t>(count));
    file_->read_at(places.lists[i], std::as_writable_bytes(std::span(*lists[i])));
  }
  axis.segments.resize(static_cast<size_t>(places.segment_bytes));
  file_->read_at(places.segments, std::as_writable_bytes(std::span(axis.segments)));
  axis.segments_by_item = places.segment_bytes != count;
  axis.named_segments = places.named_segments;
  return axis;
}

GroupDescription PartFile::describe(size_t group) const {
  const GroupLists& lists = lists_.at(group);
  GroupDescription description{read_axis(lists.query, lists.extents.rows),
                               read_axis(lists.key, lists.extents.keys), lists.text,
                               lists.text_lists};
  if (calls_.at(group).sinks.empty()) return description;
  if (lists.sinks_shape.empty()) {
    throw file_error(path_.string(), "sinks", "are missing, which its calls have");
  }
  const auto count = checked_count(lists.sinks_shape);
  if (!count || *count > file_->size() / 4) {
    throw file_error(path_.string(), "sinks", "has more numbers than the file has bytes");
  }
  description.sinks.resize(static_cast<size_t>(*count));
  file_->read_at(lists.sinks, std::as_writable_bytes(std::span(description.sinks)));
  description.sinks_by_query = lists.sinks_shape.size() == 3;
  return description;
}

void require_no_links(const ExportManifest& stored, const std::filesystem::path& path) {
  if (stored.parts.empty() && stored.shards.empty()) return;
  throw file_error(path.string(), "", "links other files, which no part that is linked does");
}

uint64_t PartFile::digest() const { return part_digest(stored_, *file_); }

uint64_t part_digest(const ExportManifest& stored, const InputFile& file) {
  std::vector<uint64_t> sums(1);
  file.read_at(stored.structure, std::as_writable_bytes(std::span(sums)));
  std::vector<std::byte> bytes;
  const auto add = [&](int64_t place, int64_t count) {
    if (place < 0) return;
    bytes.resize(static_cast<size_t>(count) * 4);
    file.read_at(place, bytes);
    sums.push_back(checksum64(bytes));
  };
  for (const StoredGroup& group : stored.groups) {
    if (!group.entries_name.empty()) add(group.places.entries_checksums, group.grid.chunks());
    if (group.has_lse) add(group.places.lse_checksums, group.grid.heads);
  }
  return checksum64(std::as_bytes(std::span(sums)));
}

}  // namespace attnscope
