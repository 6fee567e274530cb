#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/export/format/export_layout.h"
#include "io/export/format/export_part_json.h"
#include "io/files/posix_file.h"

namespace attnscope {

struct HelperQuestion;

/// One group of an export as it stands in a file.
struct StoredGroup {
  std::string name;          ///< below /calls
  std::string entries_name;  ///< "weights", "logits", "output"; empty: LSEs only
  std::vector<int64_t> batch, heads;
  bool has_lse = false;
  ChunkGrid grid;  ///< only rows and heads matter where there are no entries
  GroupPlaces places;
};

/// One shard file of an export.
struct Shard {
  std::string name;  ///< of its group
  std::string file;  ///< its name in the folder of shards
  int64_t bytes = 0;
  uint64_t checksum = 0;  ///< XXH3-64 of the file
};

/// One part of an export whose master links it; it stands beside the master.
struct LinkedPart {
  std::string file;  ///< its name
  int64_t bytes = 0;
  uint64_t digest = 0;  ///< part_digest() (io/export/read)
};

/// The name of a shard's file, NAME.CHECKSUM.h5 in 16 hexadecimal digits: files of different bytes
/// have different names, so that no export takes the place of another's shards.
std::string shard_file_name(const std::string& group, uint64_t checksum);

/// An export file seen from outside the HDF5 library: what it consists of and where it stands. Task
/// t of the stream is head t of all groups, counted through. Pure data.
struct ExportManifest {
  std::string product, capture, capture_hash, version;
  std::string options;              ///< JSON
  std::vector<StoredGroup> groups;  ///< in this very file
  std::vector<Shard> shards;        ///< in files that it links
  std::string shard_folder;         ///< their folder's name; it stands beside this file
  std::string named_folder = {};    ///< as it was when the file was written: others look there
  std::vector<LinkedPart> parts;    ///< in whose files the tiles are, where it is their master
  /// Where the file has neither tiles nor shards (pooled, stats, a master of parts): the names of
  /// its groups. Its checksum is then over everything.
  std::vector<std::string> plain_groups;
  std::optional<StoredPart> part;  ///< which part of an export it is, where it is one
  int64_t complete = -1;           ///< where the mark stands
  int64_t structure = -1;          ///< where the checksum of the structure stands
  int64_t file_bytes = 0;

  /// The group and the head within it that a task fills.
  struct TaskPlace {
    const StoredGroup* group = nullptr;
    int64_t head = 0;
  };
  std::vector<TaskPlace> tasks() const;
};

/// The manifest of an export of this layout once its structure is written.
ExportManifest make_manifest(const ExportSpec& spec, const ExportLayout& layout,
                             const ExportPlaces& places);

/// True where two files have the same groups, shapes and chunks (not: the same places).
bool same_shape(const ExportManifest& a, const ExportManifest& b);

/// XXH3-64 of everything in the file that is written before the first tile: all bytes outside the
/// entries, the LSEs, their checksums, the mark of completeness and this checksum itself. Throws
/// Error(file).
uint64_t structure_checksum(const ExportManifest& stored, const PosixFile& file);
/// Reads the checksum of the structure that the file itself has.
uint64_t recorded_structure_checksum(const ExportManifest& stored, const PosixFile& file);

/// True where `path` is a file that begins as HDF5 files do.
bool is_hdf5_file(const std::filesystem::path& path);
/// True where it is one that says that it is an export; others hold tensors. Throws Error(file) for
/// an HDF5 file that cannot be read.
bool is_export_file(const std::filesystem::path& path);

/// Reads the structure of an export (also of an OUT.part) with the HDF5 library, in the helper
/// process: a damaged file may crash or hang the library. Throws Error(file) when it is no HDF5
/// file, no export, or its structure cannot be read; otherwise as ask_helper.
ExportManifest read_manifest(const std::filesystem::path& path);

/// The question that read_manifest() asks the helper process (io/helper).
extern const HelperQuestion kManifestQuestion;

}  // namespace attnscope
