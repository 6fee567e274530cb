// Where chunks stand, by the file's own index and by the library.
#include <hdf5.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/tensors/hdf5_chunk_index.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

struct Sample {
  std::string path;
  int64_t header = 0;
  int64_t chunks = 0;
  std::vector<std::optional<ChunkPlace>> places;  ///< as the library tells them
};

/// A deflated dataset of `chunks` chunks of 16 bytes, of which those are written that `written`
/// says, in the library's format of that version.
Sample write_sample(const std::string& path, hsize_t chunks,
                    const std::function<bool(hsize_t)>& written, int attributes = 0,
                    H5F_libver_t version = H5F_LIBVER_V110) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
  H5Pset_libver_bounds(access, version == H5F_LIBVER_V110 ? version : H5F_LIBVER_EARLIEST, version);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  REQUIRE(file >= 0);
  const hsize_t shape[] = {chunks, 16}, chunk[] = {1, 16};
  const hid_t space = H5Screate_simple(2, shape, nullptr);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(creation, 2, chunk);
  H5Pset_deflate(creation, 4);
  const hid_t dataset =
      H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  REQUIRE(dataset >= 0);
  for (int a = 0; a < attributes; ++a) {
    const hsize_t extent = 64;
    const hid_t list = H5Screate_simple(1, &extent, nullptr);
    const std::string name = "attribute " + std::to_string(a);
    REQUIRE(H5Acreate2(dataset, name.c_str(), H5T_STD_I64LE, list, H5P_DEFAULT, H5P_DEFAULT) >= 0);
  }
  const std::string bytes(64, 'x');
  for (hsize_t i = 0; i < chunks; ++i) {
    const hsize_t at[] = {i, 0};
    if (!written(i)) continue;
    REQUIRE(H5Dwrite_chunk(dataset, H5P_DEFAULT, i % 2, at, 10 + i % 20, bytes.data()) >= 0);
  }
  Sample sample{path, 0, static_cast<int64_t>(chunks), {}};
  REQUIRE(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
  for (hsize_t i = 0; i < chunks; ++i) {
    const hsize_t at[] = {i, 0};
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t size = 0;
    REQUIRE(H5Dget_chunk_info_by_coord(dataset, at, &mask, &address, &size) >= 0);
    sample.places.emplace_back();
    if (address == HADDR_UNDEF) continue;
    sample.places.back() = {static_cast<int64_t>(address), static_cast<int64_t>(size), mask};
  }
  H5O_info_t info{};
  REQUIRE(H5Oget_info1(dataset, &info) >= 0);
  sample.header = static_cast<int64_t>(info.addr);
  REQUIRE(H5Fclose(file) >= 0);
  H5Pclose(access);
  return sample;
}

Hdf5ChunkIndex open_index(const Sample& sample) {
  return {std::make_shared<InputFile>(sample.path), "dataset x", sample.header, sample.chunks};
}

void check_places(const Sample& sample) {
  const Hdf5ChunkIndex index = open_index(sample);
  for (int64_t i = 0; i < sample.chunks; ++i) {
    const auto place = index.place(i);
    const auto& expected = sample.places[static_cast<size_t>(i)];
    INFO("chunk " << i);
    REQUIRE(place.has_value() == expected.has_value());
    if (!place) continue;
    REQUIRE(place->offset == expected->offset);
    REQUIRE(place->bytes == expected->bytes);
    REQUIRE(place->skipped == expected->skipped);
  }
}

/// Reads the place of every chunk; true where that is an error.
bool read_places(const Sample& sample) {
  try {
    const Hdf5ChunkIndex index = open_index(sample);
    for (int64_t i = 0; i < sample.chunks; ++i) index.place(i);
  } catch (const Error& error) {
    REQUIRE(error.code() == ErrorCode::file);
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a chunk index tells what the library tells") {
  const TemporaryFolder folder;
  const auto all = [](hsize_t) { return true; };
  const auto none = [](hsize_t) { return false; };
  check_places(write_sample(folder / "single.h5", 1, all));
  check_places(write_sample(folder / "none-single.h5", 1, none));
  check_places(write_sample(folder / "array.h5", 300, all));
  check_places(write_sample(folder / "holes.h5", 300, [](hsize_t i) { return i % 3 == 1; }));
  check_places(write_sample(folder / "none.h5", 300, none));
  // More than fit one page, with a page that was never written, and a last one cut short.
  check_places(write_sample(folder / "pages.h5", 3500,
                            [](hsize_t i) { return i < 900 || (i > 2500 && i % 5 != 0); }));
  // So many attributes that the header goes on elsewhere.
  check_places(write_sample(folder / "attributes.h5", 40, all, 7));
}

TEST_CASE("an index of another kind, or none, is refused by name") {
  const TemporaryFolder folder;
  const auto all = [](hsize_t) { return true; };
  const auto refused = [](const Sample& sample) {
    try {
      open_index(sample);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::file);
      return std::string(error.what());
    }
    return std::string();
  };
  Sample sample = write_sample(folder / "tree.h5", 30, all, 0, H5F_LIBVER_V18);
  CHECK(refused(sample) == folder / "tree.h5" + ": dataset x: has no index of its chunks");
  sample = write_sample(folder / "array.h5", 30, all);
  sample.chunks = 31;
  CHECK(refused(sample) == folder / "array.h5" + ": dataset x: has a damaged index of its chunks");
  for (const int64_t header : {int64_t{0}, int64_t{1} << 40, INT64_MAX, int64_t{-1}}) {
    sample.header = header;
    CHECK(refused(sample) == folder / "array.h5" + ": dataset x: has no index of its chunks");
  }
}

TEST_CASE("a damaged chunk index is an error or tells wrong places, and nothing worse") {
  const TemporaryFolder folder;
  const Sample sample = write_sample(folder / "array.h5", 20, [](hsize_t i) { return i != 7; });
  const std::string bytes = read_bytes(sample.path);
  int errors = 0;
  for (const std::string signature : {"OHDR", "FAHD", "FADB"}) {
    const size_t begin =
        signature == "OHDR" ? static_cast<size_t>(sample.header) : bytes.find(signature);
    REQUIRE(begin != std::string::npos);
    const size_t end = std::min(begin + 220, bytes.size());
    for (size_t at = begin; at < end; ++at) {
      for (const char value : {'\x01', '\xff'}) {
        poke(sample.path, static_cast<int64_t>(at), value);
        errors += read_places(sample);
      }
      poke(sample.path, static_cast<int64_t>(at), bytes[at]);
    }
  }
  CHECK(errors > 100);
  for (size_t length = bytes.size(); length > 40; length -= 40) {
    std::filesystem::resize_file(sample.path, length);
    read_places(sample);
  }
}
