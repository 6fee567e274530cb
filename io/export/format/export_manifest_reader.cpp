#include "io/export/format/export_manifest.h"

#include <algorithm>
#include <array>
#include <climits>
#include <nlohmann/json.hpp>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/files/input_file.h"
#include "io/files/json_types.h"
#include "io/hdf5/hdf5_reader.h"
#include "io/hdf5/hdf5_signature.h"
#include "io/helper/ask_helper.h"

namespace attnscope {
namespace {

/// Lists of batch items and heads are never longer.
constexpr int64_t kMaxIndices = 1 << 20;

/// Reads the structure of one file; runs in the helper process.
class StructureReader : private Hdf5Reader {
 public:
  explicit StructureReader(const std::string& path) : Hdf5Reader(path) {}

  Json read() {
    const hid_t root = this->root();
    if (H5Aexists(root, "format") <= 0 || text(root, "format") != "attnscope-export/1") {
      throw file_error(path(), "", "is an HDF5 file, but no attnscope export");
    }
    Json json;
    for (const char* name :
         {"product", "capture", "capture_hash", "attnscope_version", "options"}) {
      json[name] = text(root, name);
    }
    if (has_attribute(root, "shard")) {
      for (const char* name : {"shard", "plan_hash", "part"})
        json["part"].push_back(text(root, name));
    }
    json["complete"] = address(dataset(root, "complete"), "complete");
    json["structure"] = address(dataset(root, "structure_checksum"), "structure_checksum");
    json["groups"] = Json::array();
    const Hdf5Group calls(H5Gopen2(root, "calls", H5P_DEFAULT), path(), "group calls");
    H5G_info_t info{};
    check(H5Gget_info(calls.id(), &info), "group calls");
    if (H5Lexists(root, "shards", H5P_DEFAULT) > 0) {
      json["shards"] = read_shards(root, info.nlinks);
      return json;
    }
    const bool linked = H5Lexists(root, "parts", H5P_DEFAULT) > 0;
    if (linked) json["parts"] = read_files(root, "parts");
    const bool plain = linked || json["product"] == "pooled" || json["product"] == "stats";
    if (plain) json["plain"] = Json::array();
    for (hsize_t i = 0; i < info.nlinks; ++i) {
      if (plain) {
        json["plain"].push_back(group_name(calls.id(), i));
      } else {
        json["groups"].push_back(read_group(calls.id(), i));
      }
    }
    return json;
  }

 private:
  /// The files that a master lists, of what group; the links themselves are not followed.
  Json read_files(hid_t root, const std::string& group) const {
    const Hdf5Group list(H5Gopen2(root, group.c_str(), H5P_DEFAULT), path(), "group " + group);
    const Hdf5Dataset sums = dataset(list.id(), "checksum");
    const auto extent = shape(sums, group + "/checksum");
    if (extent.size() != 1 || extent[0] < 0 || extent[0] > kMaxIndices) {
      bad(group, "is no list of files");
    }
    const auto count = static_cast<size_t>(extent[0]);
    std::vector<uint64_t> checksums(count);
    std::vector<int64_t> bytes(count);
    const Hdf5Dataset sizes = dataset(list.id(), "bytes");
    if (shape(sizes, group + "/bytes") != extent) bad(group + "/bytes", "has another length");
    Json files = Json::array();
    // Of a part without heads, whose lists have no place.
    if (count == 0) return files;
    address(sums, group + "/checksum");
    address(sizes, group + "/bytes");
    check(H5Dread(sums.id(), H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, checksums.data()),
          group + "/checksum");
    check(H5Dread(sizes.id(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()),
          group + "/bytes");
    const std::vector<std::string> names = this->names(list.id(), "file", extent);
    for (size_t i = 0; i < count; ++i) {
      files.push_back({{"file", names[i]}, {"bytes", bytes[i]}, {"checksum", checksums[i]}});
    }
    return files;
  }

  /// The list of shards, each with the group that its link stands for.
  Json read_shards(hid_t root, hsize_t links) const {
    Json shards = read_files(root, "shards");
    if (shards.size() != links) bad("shards", "does not fit the links");
    const Hdf5Group calls(H5Gopen2(root, "calls", H5P_DEFAULT), path(), "group calls");
    for (hsize_t i = 0; i < links; ++i) shards[i]["name"] = group_name(calls.id(), i);
    return shards;
  }

  /// A list of names in /shards or /parts.
  std::vector<std::string> names(hid_t list, const std::string& name,
                                 const std::vector<int64_t>& extent) const {
    const Hdf5Dataset d = dataset(list, name);
    if (shape(d, name) != extent) bad(name, "has another length");
    return strings(d, name, kMaxIndices);
  }

  std::string group_name(hid_t calls, hsize_t number) const {
    char name[1024] = "";
    const ssize_t length = H5Lget_name_by_idx(calls, ".", H5_INDEX_CRT_ORDER, H5_ITER_INC, number,
                                              name, sizeof name, H5P_DEFAULT);
    if (length <= 0 || length >= static_cast<ssize_t>(sizeof name)) bad("calls", "has a bad link");
    return name;
  }

  Json read_group(hid_t calls, hsize_t number) const {
    const std::string group_text = group_name(calls, number);
    const char* name = group_text.c_str();
    H5L_info_t link{};
    check(H5Lget_info(calls, name, &link, H5P_DEFAULT), name);
    if (link.type != H5L_TYPE_HARD) bad(name, "is a link to somewhere else");
    const Hdf5Group group(H5Gopen2(calls, name, H5P_DEFAULT), path(), std::string("group ") + name);
    const Hdf5Group sums(H5Gopen2(group.id(), "checksums", H5P_DEFAULT), path(), "checksums");
    Json json;
    json["name"] = name;
    json["batch"] = integers(group.id(), "batch", kMaxIndices);
    json["heads"] = integers(group.id(), "head", kMaxIndices);
    json["entries_name"] = "";
    for (const char* entries : {"weights", "logits", "output"}) {
      if (H5Lexists(group.id(), entries, H5P_DEFAULT) > 0) {
        read_entries(group.id(), sums.id(), entries, json);
      }
    }
    if (H5Lexists(group.id(), "lse", H5P_DEFAULT) > 0) {
      const Hdf5Dataset lse = dataset(group.id(), "lse");
      json["lse_shape"] = shape(lse, "lse");
      json["lse"] = address(lse, "lse");
      json["lse_checksums"] = address(dataset(sums.id(), "lse"), "checksums/lse");
    }
    return json;
  }

  void read_entries(hid_t group, hid_t sums, const std::string& name, Json& json) const {
    const Hdf5Dataset d = dataset(group, name);
    const Hdf5Properties creation(H5Dget_create_plist(d.id()), path(), name);
    hsize_t chunk[4] = {};
    if (H5Pget_layout(creation.id()) != H5D_CHUNKED || H5Pget_nfilters(creation.id()) != 0 ||
        H5Pget_external_count(creation.id()) != 0 || H5Pget_chunk(creation.id(), 4, chunk) != 4) {
      bad(name, "is not stored as attnscope stores it");
    }
    const Hdf5Type type(H5Dget_type(d.id()), path(), name);
    const hsize_t origin[4] = {};
    unsigned filters = 0;
    haddr_t base = HADDR_UNDEF;
    hsize_t bytes = 0;
    check(H5Dget_chunk_info_by_coord(d.id(), origin, &filters, &base, &bytes), name);
    if (base == HADDR_UNDEF || base > static_cast<haddr_t>(INT64_MAX)) {
      bad(name, "has no place in the file");
    }
    json["entries_name"] = name;
    json["shape"] = shape(d, name);
    json["chunk"] = {chunk[2], chunk[3]};
    json["element_bytes"] = H5Tget_size(type.id());
    json["entries"] = base;
    json["entries_checksums"] = address(dataset(sums, name), "checksums/" + name);
  }
};

/// Parses and checks a group of the helper's answer: it read a file that may be damaged.
StoredGroup parse_group(const Json& json, const std::string& path) {
  StoredGroup group;
  group.name = json["name"].get<std::string>();
  const auto require = [&](bool condition) {
    if (!condition) throw file_error(path, group.name, "its datasets do not fit each other");
  };
  group.batch = json["batch"].get<std::vector<int64_t>>();
  group.heads = json["heads"].get<std::vector<int64_t>>();
  group.entries_name = json["entries_name"].get<std::string>();
  group.has_lse = json.contains("lse");
  ChunkGrid& grid = group.grid;
  grid.heads = static_cast<int64_t>(group.batch.size() * group.heads.size());
  std::vector<int64_t> shape;
  if (group.has_lse) {
    shape = json["lse_shape"].get<std::vector<int64_t>>();
    require(shape.size() == 3 && shape[0] * shape[1] == grid.heads);
    grid.rows = shape[2];
    group.places.lse = json["lse"].get<int64_t>();
    group.places.lse_checksums = json["lse_checksums"].get<int64_t>();
  }
  if (!group.entries_name.empty()) {
    shape = json["shape"].get<std::vector<int64_t>>();
    const auto chunk = json["chunk"].get<std::vector<int64_t>>();
    require(shape.size() == 4 && shape[0] * shape[1] == grid.heads && chunk[0] > 0 && chunk[1] > 0);
    require(!group.has_lse || grid.rows == shape[2]);
    grid.rows = shape[2];
    grid.cols = shape[3];
    grid.chunk_rows = chunk[0];
    grid.chunk_cols = chunk[1];
    grid.element_bytes = json["element_bytes"].get<int64_t>();
    group.places.entries = json["entries"].get<int64_t>();
    group.places.entries_checksums = json["entries_checksums"].get<int64_t>();
    const int64_t factors[] = {grid.chunk_rows,
                               grid.chunk_cols,
                               grid.element_bytes,
                               ceil_div(grid.rows, grid.chunk_rows),
                               ceil_div(grid.cols, grid.chunk_cols),
                               grid.heads};
    require(grid.cols > 0 && checked_count(factors).has_value());
  }
  require(grid.rows > 0 && (group.has_lse || !group.entries_name.empty()));
  return group;
}

bool is_plain(const std::string& text) {
  return !text.empty() && text.find('/') == std::string::npos && text[0] != '.';
}

/// A part is a file beside the master, and nothing else is followed.
LinkedPart parse_linked_part(const Json& json, const std::string& path) {
  LinkedPart part{json["file"].get<std::string>(), json["bytes"].get<int64_t>(),
                  json["checksum"].get<uint64_t>()};
  if (!is_plain(part.file)) throw file_error(path, "parts/file", "has a name that is no file's");
  return part;
}

Shard parse_shard(const Json& json, const std::string& path) {
  // It says "OUT.d/FILE"; whatever OUT is called by now, the shards stand in its own folder.
  const auto file = json["file"].get<std::string>();
  Shard shard{json["name"].get<std::string>(), file.substr(file.rfind('/') + 1),
              json["bytes"].get<int64_t>(), json["checksum"].get<uint64_t>()};
  if (!is_plain(shard.name)) throw file_error(path, "calls", "has a link whose name is no file's");
  if (!is_plain(shard.file)) throw file_error(path, "shards/file", "has a name that is no file's");
  return shard;
}

}  // namespace

const HelperQuestion kManifestQuestion{"the structure of an export",
                                       [](const std::string& path, const Json&) {
                                         const Hdf5Session session;
                                         return StructureReader(path).read();
                                       }};

ExportManifest read_manifest(const std::filesystem::path& path) {
  const std::string name = path.string();
  {
    const InputFile file(path);
    std::array<char, 8> signature{};
    const auto bytes = std::min<int64_t>(file.size(), 8);
    file.read_at(0, std::as_writable_bytes(std::span(signature)).first(static_cast<size_t>(bytes)));
    if (!begins_as_hdf5({signature.data(), signature.size()})) {
      throw file_error(name, "", "is no HDF5 file");
    }
  }
  const Json json = ask_helper(kManifestQuestion, name);
  ExportManifest stored;
  stored.product = json["product"].get<std::string>();
  stored.capture = json["capture"].get<std::string>();
  stored.capture_hash = json["capture_hash"].get<std::string>();
  stored.version = json["attnscope_version"].get<std::string>();
  stored.options = json["options"].get<std::string>();
  if (json.contains("part")) {
    const auto part = json["part"].get<std::vector<std::string>>();
    stored.part = parse_export_part(part.at(0), part.at(1), part.at(2), name);
  }
  stored.complete = json["complete"].get<int64_t>();
  stored.structure = json["structure"].get<int64_t>();
  if (json.contains("shards")) {
    stored.shard_folder = path.filename().string() + ".d";
    for (const Json& shard : json["shards"]) stored.shards.push_back(parse_shard(shard, name));
    if (!stored.shards.empty()) {
      const auto named = json["shards"].front()["file"].get<std::string>();
      stored.named_folder = named.substr(0, named.rfind('/'));
    }
  }
  if (json.contains("parts")) {
    for (const Json& part : json["parts"]) stored.parts.push_back(parse_linked_part(part, name));
  }
  if (json.contains("plain")) {
    stored.plain_groups = json["plain"].get<std::vector<std::string>>();
  }
  for (const Json& group : json["groups"]) stored.groups.push_back(parse_group(group, name));
  stored.file_bytes = InputFile(path).size();
  return stored;
}

}  // namespace attnscope
