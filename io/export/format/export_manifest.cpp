#include "io/export/format/export_manifest.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "core/base/error.h"
#include "core/base/version.h"
#include "io/files/checksum.h"
#include "io/files/file_text.h"
#include "io/hdf5/hdf5_signature.h"
#include "io/tensors/hdf5_tensors.h"

namespace attnscope {
namespace {

constexpr int64_t kPieceBytes = 1 << 20;

struct Region {
  int64_t begin = 0;
  int64_t end = 0;
};

/// The regions of the file that are written after the structure, ascending.
std::vector<Region> data_regions(const ExportManifest& stored) {
  std::vector<Region> regions{{stored.complete, stored.complete + 1},
                              {stored.structure, stored.structure + 8}};
  const auto add = [&](int64_t begin, int64_t bytes) {
    if (begin >= 0) regions.push_back({begin, begin + bytes});
  };
  for (const StoredGroup& group : stored.groups) {
    const ChunkGrid& grid = group.grid;
    if (!group.entries_name.empty()) {
      add(group.places.entries, grid.bytes());
      add(group.places.entries_checksums, grid.chunks() * 4);
    }
    if (group.has_lse) {
      add(group.places.lse, grid.heads * grid.rows * 4);
      add(group.places.lse_checksums, grid.heads * 4);
    }
  }
  std::sort(regions.begin(), regions.end(),
            [](const Region& a, const Region& b) { return a.begin < b.begin; });
  return regions;
}

}  // namespace

std::string shard_file_name(const std::string& group, uint64_t checksum) {
  return fmt::format("{}.{:016x}.h5", group, checksum);
}

std::vector<ExportManifest::TaskPlace> ExportManifest::tasks() const {
  std::vector<TaskPlace> places;
  for (const StoredGroup& group : groups) {
    for (int64_t head = 0; head < group.grid.heads; ++head) places.push_back({&group, head});
  }
  return places;
}

ExportManifest make_manifest(const ExportSpec& spec, const ExportLayout& layout,
                             const ExportPlaces& places) {
  ExportManifest stored;
  stored.product = export_product_name(spec.product);
  stored.capture = spec.capture_name;
  stored.capture_hash = spec.capture_hash;
  stored.version = version();
  stored.options = spec.options_json;
  if (spec.share) stored.part = StoredPart{spec.share->part, {}, {}};
  stored.complete = places.complete;
  stored.structure = places.structure;
  stored.file_bytes = places.file_bytes;
  for (size_t g = 0; g < layout.groups.size(); ++g) {
    const ExportGroup& group = layout.groups[g];
    stored.groups.push_back({group.name, layout.entries_name, group.batch, group.heads,
                             group.has_lse, group.grid,
                             g < places.groups.size() ? places.groups[g] : GroupPlaces{}});
  }
  return stored;
}

bool same_shape(const ExportManifest& a, const ExportManifest& b) {
  return std::equal(a.groups.begin(), a.groups.end(), b.groups.begin(), b.groups.end(),
                    [](const StoredGroup& x, const StoredGroup& y) {
                      const bool entries =
                          x.entries_name.empty() ||
                          (x.grid.cols == y.grid.cols && x.grid.chunk_rows == y.grid.chunk_rows &&
                           x.grid.chunk_cols == y.grid.chunk_cols &&
                           x.grid.element_bytes == y.grid.element_bytes);
                      return x.name == y.name && x.entries_name == y.entries_name &&
                             x.batch == y.batch && x.heads == y.heads && x.has_lse == y.has_lse &&
                             x.grid.heads == y.grid.heads && x.grid.rows == y.grid.rows && entries;
                    });
}

uint64_t structure_checksum(const ExportManifest& stored, const PosixFile& file) {
  RunningChecksum sum;
  std::vector<std::byte> buffer(kPieceBytes);
  const auto add = [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t bytes = std::min(kPieceBytes, end - begin);
      const std::span piece(buffer.data(), static_cast<size_t>(bytes));
      file.read_at(piece, begin);
      sum.add(piece);
      begin += bytes;
    }
  };
  int64_t at = 0;
  for (const Region& region : data_regions(stored)) {
    add(at, region.begin);
    at = std::max(at, region.end);
  }
  add(at, file.size());
  return sum.digest();
}

bool is_hdf5_file(const std::filesystem::path& path) {
  return begins_as_hdf5(beginning_of_file(path, 8));
}

bool is_export_file(const std::filesystem::path& path) {
  return is_hdf5_file(path) && says_export(path);
}

uint64_t recorded_structure_checksum(const ExportManifest& stored, const PosixFile& file) {
  uint64_t value = 0;
  file.read_at(std::as_writable_bytes(std::span(&value, 1)), stored.structure);
  return value;
}

}  // namespace attnscope
