#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "io/export/format/export_manifest.h"
#include "io/export/format/group_description.h"
#include "io/files/input_set.h"
#include "io/files/json_types.h"

namespace attnscope {

struct HelperQuestion;

/// One part of an export, complete and with a sound structure: what has to be known of it to make
/// the whole of all parts. The HDF5 library tells its structure, in the helper process; lists are
/// read with our own pread. Immutable; thread-safe.
class PartFile {
 public:
  /// The file is opened in `inputs`. Throws Error(file) where it is no part of an export, is not
  /// complete, or its structure is not what was written.
  PartFile(const std::filesystem::path& path, InputSet& inputs);

  const std::filesystem::path& path() const { return path_; }
  const ExportManifest& stored() const { return stored_; }
  const StoredPart& part() const { return *stored_.part; }
  const InputFile& file() const { return *file_; }

  /// Names of the groups, and what they say of their calls; none of a part in shards that an older
  /// version wrote, whose groups are links.
  const std::vector<std::string>& groups() const { return groups_; }
  const std::vector<CallDescription>& calls() const { return calls_; }
  /// The batch items and heads of a group, ascending.
  const std::vector<int64_t>& batch_of(size_t group) const { return batch_[group]; }
  const std::vector<int64_t>& heads_of(size_t group) const { return heads_[group]; }
  /// The coordinates of a group of maps. Throws Error(file).
  GroupDescription describe(size_t group) const;
  /// The sizes of a group of maps.
  struct Extents {
    int64_t rows = 0, keys = 0;
    bool has_lse = false;
  };
  const Extents& extents_of(size_t group) const { return lists_.at(group).extents; }
  /// The levels of blocks of a group of a pooled part, from the finest; empty of others.
  struct Level {
    int64_t block = 0, rows = 0, cols = 0;  ///< blocks
    int64_t max = 0, mean = 0;              ///< where [batch, head, row, col] of float32 stand
  };
  struct Blocks {
    int64_t first_row = 0, first_key = 0;
    std::vector<Level> levels;
  };
  const Blocks& blocks_of(size_t group) const { return blocks_[group]; }
  /// The records of a part of stats, as JSON, one a head.
  const std::vector<std::string>& records() const { return records_; }
  /// A hash that pins the content of the file down without reading the entries: XXH3-64 of the
  /// checksum of its structure and of all checksums of entries and LSEs.
  uint64_t digest() const;

 private:
  /// Where one axis' lists stand.
  struct AxisPlaces {
    std::array<int64_t, 4> lists{};  ///< indices, t, y, x: int32
    int64_t segments = 0, segment_bytes = 0;
    std::vector<std::string> named_segments;
  };
  struct GroupLists {
    Extents extents;
    AxisPlaces query, key;
    std::vector<std::string> text;
    int64_t text_lists = 1;
    int64_t sinks = 0;                 ///< where they stand in the file
    std::vector<int64_t> sinks_shape;  ///< [batch, head] or [batch, head, query]; empty: none
  };
  AxisDescription read_axis(const AxisPlaces& places, int64_t count) const;
  void read_groups();
  Blocks parse_blocks(const Json& levels) const;

  const std::filesystem::path path_;
  const std::shared_ptr<const InputFile> file_;
  ExportManifest stored_;
  std::vector<std::string> groups_, records_;
  std::vector<CallDescription> calls_;
  std::vector<std::vector<int64_t>> batch_, heads_;
  std::vector<Blocks> blocks_;
  std::vector<GroupLists> lists_;  ///< one a group of maps; else empty
};

/// PartFile::digest() of a file that may be no part any more. Throws Error(file).
uint64_t part_digest(const ExportManifest& stored, const InputFile& file);

/// Throws Error(file) where an export has its entries in other files: no master links such a one,
/// so that whoever follows links comes to an end.
void require_no_links(const ExportManifest& stored, const std::filesystem::path& path);

/// The question that PartFile asks the helper process (io/helper): the groups of a part.
extern const HelperQuestion kPartQuestion;

}  // namespace attnscope
