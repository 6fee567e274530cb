#include "io/export/format/export_marks.h"

#include "core/base/error.h"

namespace attnscope {

void create_export_marks(const Hdf5Writer& writer, std::string_view complete_name,
                         ExportManifest& stored) {
  const Hdf5Dataset complete = writer.create_dataset(
      writer.root(), "complete", Hdf5Writer::file_type<uint8_t>(), {}, Hdf5Storage::preallocated);
  writer.attribute(complete.id(), "long_name", complete_name);
  stored.complete = writer.address(complete);
  const Hdf5Dataset structure =
      writer.create_dataset(writer.root(), "structure_checksum", Hdf5Writer::file_type<uint64_t>(),
                            {}, Hdf5Storage::preallocated);
  writer.attribute(structure.id(), "algorithm", "xxh3-64");
  stored.structure = writer.address(structure);
}

void seal_export(const ExportManifest& stored, const PosixFile& file) {
  const uint64_t sum = structure_checksum(stored, file);
  file.write_at(std::as_bytes(std::span(&sum, 1)), stored.structure);
  const std::byte complete{1};
  file.write_at({&complete, 1}, stored.complete);
}

bool has_sound_structure(const ExportManifest& stored, const PosixFile& file) {
  return structure_checksum(stored, file) == recorded_structure_checksum(stored, file);
}

void require_sound_structure(const ExportManifest& stored, const PosixFile& file) {
  if (has_sound_structure(stored, file)) return;
  throw file_error(file.path().string(), "",
                   "its attributes or coordinates are not what was written (attnscope verify tells "
                   "all)");
}

bool is_marked_complete(const ExportManifest& stored, const PosixFile& file) {
  std::byte mark{};
  file.read_at({&mark, 1}, stored.complete);
  if (mark > std::byte{1}) {
    throw file_error(file.path().string(), "complete", "is neither 0 nor 1: the file is damaged");
  }
  return mark == std::byte{1};
}

}  // namespace attnscope
