#include <fcntl.h>
#include <hdf5.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>

#include "io/capture/capture.h"
#include "io/tensors/hdf5_tensors.h"
#include "io/tensors/open_tensor_file.h"
#include "tests/support/catch.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

std::string data_file(const std::string& name) { return project_folder() + "/tests/data/" + name; }

/// A file with /good, eight floats, and what `add` puts beside it. Ids are left to H5Fclose.
void write_hdf5(const std::string& path, const std::function<void(hid_t file)>& add) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  REQUIRE(file >= 0);
  const hsize_t extent = 8;
  const float values[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  const hid_t space = H5Screate_simple(1, &extent, nullptr);
  const hid_t good =
      H5Dcreate2(file, "good", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Dwrite(good, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  add(file);
  REQUIRE(H5Fclose(file) >= 0);
  H5Pclose(access);
}

/// Creates the dataset "bad" of `shape`, in chunks where there are any.
hid_t create_bad(hid_t file, const std::vector<hsize_t>& shape, const std::vector<hsize_t>& chunk,
                 hid_t type, const std::function<void(hid_t creation)>& change = {}) {
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  if (!chunk.empty()) H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
  if (change) change(creation);
  const hid_t dataset = H5Dcreate2(file, "bad", type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  REQUIRE(dataset >= 0);
  return dataset;
}

size_t pass_through(unsigned, size_t, const unsigned*, size_t bytes, size_t*, void**) {
  return bytes;
}

/// A filter that no other program knows.
void register_filter() {
  const H5Z_class2_t filter{H5Z_CLASS_T_VERS, 300,     1,       1,
                            "odd filter",     nullptr, nullptr, pass_through};
  REQUIRE(H5Zregister(&filter) >= 0);
}

void write_floats(hid_t dataset, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 251);
  REQUIRE(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
}

}  // namespace

TEST_CASE("hdf5: boxes of packed chunks have the right values") {
  const auto expected = open_tensor_file(data_file("dumps/expected.safetensors"));
  const auto packed = open_tensor_file(data_file("dumps/qk_gzip.h5"));
  const auto plain = open_tensor_file(data_file("dumps/qk.h5"));
  CHECK(packed->keys() == std::vector<std::string>{"block/attn/k", "block/attn/q"});
  CHECK(plain->metadata() == std::map<std::string, std::string>{{"layer_idx", "2"}});
  const std::vector<int64_t> shape{1, 2, 96, 64};
  uint32_t state = 3;
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<int64_t> begin, count;
    for (const int64_t extent : shape) {
      state = state * 1664525 + 1013904223;
      begin.push_back((state >> 8) % static_cast<uint32_t>(extent));
      state = state * 1664525 + 1013904223;
      count.push_back(1 + (state >> 8) % static_cast<uint32_t>(extent - begin.back()));
    }
    for (const std::string name : {"q", "k"}) {
      const auto truth = read_values<float>(*expected->tensor(name), begin, count);
      const auto bits = read_values<uint16_t>(*packed->tensor("block/attn/" + name), begin, count);
      std::vector<float> values(bits.size());
      to_floats(DType::f16, reinterpret_cast<const std::byte*>(bits.data()),
                static_cast<int64_t>(bits.size()), values.data());
      INFO(name << " trial " << trial);
      REQUIRE(read_values<float>(*plain->tensor("/" + name), begin, count) == truth);
      // bf16 values in f16: exact above its smallest normal number, else rounded to 2^-25.
      REQUIRE(std::equal(values.begin(), values.end(), truth.begin(),
                         [](float a, float b) { return std::abs(a - b) <= 3.0e-8f; }));
    }
  }
}

TEST_CASE("hdf5: attributes of groups, and of datasets by names of values, are told") {
  const TemporaryFolder folder;
  const std::string path = folder / "groups.h5";
  const auto attribute = [](hid_t object, const char* name, hid_t type, const void* value,
                            std::vector<hsize_t> extents = {}) {
    const hid_t space = extents.empty() ? H5Screate(H5S_SCALAR)
                                        : H5Screate_simple(static_cast<int>(extents.size()),
                                                           extents.data(), nullptr);
    const hid_t made = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    REQUIRE(H5Awrite(made, type, value) >= 0);
  };
  write_hdf5(path, [&](hid_t file) {
    const hid_t group = H5Gcreate2(file, "layer3", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const double scale = 0.37, lost = std::nan("");
    const int64_t window[2] = {-1, -1};
    attribute(group, "scale", H5T_NATIVE_DOUBLE, &scale);
    attribute(group, "softcap", H5T_NATIVE_DOUBLE, &lost);
    attribute(group, "window_size", H5T_NATIVE_INT64, window, {2});
    // As h5py writes truth values.
    const hid_t truth = H5Tenum_create(H5T_NATIVE_INT8);
    int8_t value = 0;
    H5Tenum_insert(truth, "FALSE", &value);
    H5Tenum_insert(truth, "TRUE", &++value);
    attribute(group, "is_causal", truth, &value);
    const hid_t good = H5Dopen2(file, "good", H5P_DEFAULT);
    attribute(good, "scale", H5T_NATIVE_DOUBLE, &scale);
    attribute(good, "units", H5T_NATIVE_DOUBLE, &scale);
    const std::array<const char*, 2> names{"a", "dog"};
    const hid_t any_text = H5Tcopy(H5T_C_S1);
    H5Tset_size(any_text, H5T_VARIABLE);
    attribute(group, "tokens", any_text, static_cast<const void*>(names.data()), {2});
    const hid_t two_letters = H5Tcopy(H5T_C_S1);
    H5Tset_size(two_letters, 2);
    attribute(group, "branches", two_letters, "c\0un", {2});
    // A text as a dataset.
    const hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 4);
    const hid_t layout = H5Dcreate2(group, "layout", text, H5Screate(H5S_SCALAR), H5P_DEFAULT,
                                    H5P_DEFAULT, H5P_DEFAULT);
    REQUIRE(H5Dwrite(layout, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, "bshd") >= 0);
  });
  const auto file = open_tensor_file(path);
  CHECK(file->keys() == std::vector<std::string>{"good"});
  CHECK(file->metadata() == std::map<std::string, std::string>{{"good/scale", "0.37"},
                                                               {"layer3/branches", R"(["c","un"])"},
                                                               {"layer3/is_causal", "true"},
                                                               {"layer3/layout", "bshd"},
                                                               {"layer3/scale", "0.37"},
                                                               {"layer3/softcap", "nan"},
                                                               {"layer3/tokens", R"(["a","dog"])"},
                                                               {"layer3/window_size", "[-1,-1]"}});
}

TEST_CASE("hdf5: what cannot be read is refused by name, and no trouble to the rest") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  write_bytes(folder / "secret", std::string(64, 's'));
  register_filter();
  struct Case {
    std::string what;
    std::function<void(hid_t)> add;
    std::string part;
  };
  const std::vector<hsize_t> eight{8};
  const std::vector<Case> cases{
      {"external storage",
       [&](hid_t f) {
         create_bad(f, eight, {}, H5T_IEEE_F32LE,
                    [&](hid_t p) { H5Pset_external(p, (folder / "secret").c_str(), 0, 32); });
       },
       "data in other files"},
      {"external link",
       [&](hid_t f) {
         H5Lcreate_external("other.h5", "/good", f, "bad", H5P_DEFAULT, H5P_DEFAULT);
       },
       "a link to another file"},
      {"soft link", [](hid_t f) { H5Lcreate_soft("/good", f, "bad", H5P_DEFAULT, H5P_DEFAULT); },
       "a soft link"},
      {"virtual dataset",
       [&](hid_t f) {
         const hid_t space = H5Screate_simple(1, eight.data(), nullptr);
         create_bad(f, eight, {}, H5T_IEEE_F32LE,
                    [&](hid_t p) { H5Pset_virtual(p, space, "other.h5", "/good", space); });
       },
       "virtual"},
      {"unknown filter",
       [&](hid_t f) {
         write_floats(create_bad(f, eight, {4}, H5T_IEEE_F32LE,
                                 [](hid_t p) { H5Pset_filter(p, 300, 0, 0, nullptr); }),
                      8);
       },
       "\"odd filter\" (number 300)"},
      {"packed chunk above the limit",
       [](hid_t f) {
         create_bad(f, {5 << 20}, {5 << 20}, H5T_IEEE_F32LE, [](hid_t p) { H5Pset_deflate(p, 1); });
       },
       "packed chunks are too large"},
      {"bomb",
       [](hid_t f) {
         const hid_t dataset = create_bad(f, {1 << 20}, {1 << 20}, H5T_IEEE_F32LE,
                                          [](hid_t p) { H5Pset_deflate(p, 1); });
         const hsize_t origin = 0;
         const std::vector<char> few(64, 1);
         REQUIRE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, &origin, few.size(), few.data()) >= 0);
       },
       "a chunk of 4194304 bytes cannot be stored in 64"},
      {"chunks never written",
       [](hid_t f) { create_bad(f, {std::vector<hsize_t>{1 << 20}}, {1024}, H5T_IEEE_F32LE); },
       "not every chunk was written (got 0 of 1024)"},
      {"never written", [&](hid_t f) { create_bad(f, eight, {}, H5T_IEEE_F32LE); },
       "never written"},
      {"overflow",
       [](hid_t f) {
         create_bad(f, {hsize_t{1} << 31, hsize_t{1} << 30, 16}, {1, 1, 1}, H5T_IEEE_F32LE);
       },
       "overflows"},
      {"compact",
       [&](hid_t f) {
         create_bad(f, eight, {}, H5T_IEEE_F32LE, [](hid_t p) { H5Pset_layout(p, H5D_COMPACT); });
       },
       "compact"},
      {"compound",
       [&](hid_t f) {
         const hid_t type = H5Tcreate(H5T_COMPOUND, 8);
         H5Tinsert(type, "re", 0, H5T_IEEE_F32LE);
         H5Tinsert(type, "im", 4, H5T_IEEE_F32LE);
         create_bad(f, eight, {}, type);
       },
       "a compound type"},
      {"variable length",
       [&](hid_t f) { create_bad(f, eight, {}, H5Tvlen_create(H5T_IEEE_F32LE)); },
       "lists of variable length"},
      {"strings",
       [&](hid_t f) {
         const hid_t type = H5Tcopy(H5T_C_S1);
         H5Tset_size(type, 4);
         create_bad(f, eight, {}, type);
       },
       "strings"},
      {"null space",
       [](hid_t f) {
         H5Dcreate2(f, "bad", H5T_IEEE_F32LE, H5Screate(H5S_NULL), H5P_DEFAULT, H5P_DEFAULT,
                    H5P_DEFAULT);
       },
       "null space"},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    write_hdf5(path, c.add);
    const auto file = open_tensor_file(path);
    const std::string text = thrown_text(ErrorCode::file, [&] { file->tensor("bad"); });
    INFO(text);
    CHECK(text.rfind(path + ": dataset bad: ", 0) == 0);
    CHECK(text.find(c.part) != std::string::npos);
    CHECK(read_all<float>(*file->tensor("good")) == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
  }
}

TEST_CASE("hdf5: files with a user block have the right values") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  std::vector<float> expected(96);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<float>(i);
  for (const hsize_t block : {512, 4096}) {
    for (const bool newest : {false, true}) {
      INFO("user block " << block << ", newest format " << newest);
      const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
      H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
      if (newest) H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
      const hid_t creation = H5Pcreate(H5P_FILE_CREATE);
      REQUIRE(H5Pset_userblock(creation, block) >= 0);
      const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access);
      REQUIRE(file >= 0);
      const hsize_t shape[] = {4, 24};
      const hsize_t chunk[] = {2, 8};
      for (const std::string kind : {"plain", "chunked", "packed"}) {
        const hid_t space = H5Screate_simple(2, shape, nullptr);
        const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
        if (kind != "plain") H5Pset_chunk(properties, 2, chunk);
        if (kind == "packed") H5Pset_deflate(properties, 4);
        const hid_t dataset = H5Dcreate2(file, kind.c_str(), H5T_IEEE_F32LE, space, H5P_DEFAULT,
                                         properties, H5P_DEFAULT);
        REQUIRE(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                         expected.data()) >= 0);
      }
      REQUIRE(H5Fclose(file) >= 0);
      std::fstream bytes(path, std::ios::in | std::ios::out | std::ios::binary);
      bytes << "a note that stands before the data";
      bytes.close();
      const auto opened = open_tensor_file(path);
      auto keys = opened->keys();
      std::sort(keys.begin(), keys.end());
      CHECK(keys == std::vector<std::string>{"chunked", "packed", "plain"});
      for (const std::string& key : keys) {
        INFO(key);
        CHECK(read_all<float>(*opened->tensor(key)) == expected);
      }
    }
  }
}

TEST_CASE("hdf5: groups that hold themselves end") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  write_hdf5(path, [](hid_t f) {
    const hid_t group = H5Gcreate2(f, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(f, "/", group, "up", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(f, "/good", group, "again", H5P_DEFAULT, H5P_DEFAULT);
  });
  CHECK(open_tensor_file(path)->keys() == std::vector<std::string>{"g/again", "good"});
}

TEST_CASE("hdf5: damaged, cut and foreign bytes are an error") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  haddr_t address = 0;
  write_hdf5(path, [&](hid_t f) {
    const hid_t dataset =
        create_bad(f, {4096}, {4096}, H5T_IEEE_F32LE, [](hid_t p) { H5Pset_fletcher32(p); });
    write_floats(dataset, 4096);
    H5Fflush(f, H5F_SCOPE_LOCAL);
    const hsize_t origin = 0;
    unsigned mask = 0;
    hsize_t bytes = 0;
    H5Dget_chunk_info_by_coord(dataset, &origin, &mask, &address, &bytes);
  });
  const std::string whole = read_bytes(path);
  CHECK(read_values<float>(*open_tensor_file(path)->tensor("bad"), {300}, {2}) ==
        std::vector<float>{49, 50});
  std::string flipped = whole;
  flipped[address + 5000] = static_cast<char>(flipped[address + 5000] ^ 1);
  write_bytes(path, flipped);
  const auto damaged = open_tensor_file(path)->tensor("bad");
  CHECK(thrown_text(ErrorCode::file, [&] {
          read_values<float>(*damaged, {0}, {1});
        }).find("checksum") != std::string::npos);
  for (const size_t percent : {25, 50, 75, 99}) {
    write_bytes(path, whole.substr(0, whole.size() * percent / 100));
    const std::string text = thrown_text(ErrorCode::file, [&] { open_tensor_file(path); });
    INFO(percent << "%: " << text);
    CHECK(text.rfind(path + ": cannot be opened as HDF5", 0) == 0);
  }
  write_bytes(path, "\x89HDF\r\n\x1a\n");
  CHECK(!thrown_text(ErrorCode::file, [&] { open_tensor_file(path); }).empty());
}

TEST_CASE("hdf5: what its writer did not close is an error, what another program locks is read") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  // The library marks a file of the newer form while it is open for writing.
  std::string open_bytes;
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  REQUIRE(file >= 0);
  H5Fflush(file, H5F_SCOPE_GLOBAL);
  open_bytes = read_bytes(path);
  REQUIRE(H5Fclose(file) >= 0);
  H5Pclose(access);
  write_bytes(path, open_bytes);
  const std::string text = thrown_text(ErrorCode::file, [&] { open_tensor_file(path); });
  INFO(text);
  CHECK(text.rfind(path + ": cannot be opened as HDF5: ", 0) == 0);
  CHECK(text.find("already open for write") != std::string::npos);

  write_hdf5(path, [](hid_t) {});
  const int descriptor = open(path.c_str(), O_RDONLY);
  REQUIRE(descriptor >= 0);
  REQUIRE(flock(descriptor, LOCK_EX | LOCK_NB) == 0);
  CHECK(read_all<float>(*open_tensor_file(path)->tensor("good")) ==
        std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
  close(descriptor);
}

TEST_CASE("hdf5: files that are empty or begin otherwise are refused") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  const std::string other = "\x89HDG\r\n\x1a\n" + std::string(100, 'x');
  for (const std::string& bytes : {std::string(), other}) {
    write_bytes(path, bytes);
    CHECK(thrown_text(ErrorCode::file, [&] { open_tensor_file(path); }) ==
          path + ": is no safetensors, .npy, .npz, .pt or HDF5 file");
  }
}

TEST_CASE("hdf5: files that crash the library end in an error or in values") {
  int files = 0, refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data_file("hostile/hdf5"))) {
    INFO(entry.path());
    ++files;
    const auto begin = std::chrono::steady_clock::now();
    try {
      const auto file = open_tensor_file(entry.path());
      for (const std::string& key : file->keys()) {
        try {
          const auto tensor = file->tensor(key);
          const std::vector<int64_t> origin(tensor->shape().size(), 0);
          const std::vector<int64_t> one(tensor->shape().size(), 1);
          std::byte value[8];
          tensor->read(origin, one, value);
        } catch (const Error& error) {
          CHECK(error.code() == ErrorCode::file);
          ++refused;
        }
      }
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::file);
      ++refused;
    }
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
  }
  CHECK(files == 28);
  CHECK(refused >= 14);
}
