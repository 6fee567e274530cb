#include "tests/cli/common/large_inputs.h"

#include <hdf5.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tests/support/pickle_bytes.h"
#include "tests/support/tensor_files.h"
#include "tests/support/zip_bytes.h"

namespace attnscope::test {
namespace {

/// A file written from its start, in which zeros are holes.
class SparseFile {
 public:
  explicit SparseFile(const std::string& path) : path_(path), file_(path, std::ios::binary) {}
  ~SparseFile() {
    file_.close();
    std::filesystem::resize_file(path_, static_cast<uint64_t>(at_));
  }
  int64_t position() const { return at_; }
  void write(const std::string& bytes) {
    file_.seekp(at_);
    file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    at_ += static_cast<int64_t>(bytes.size());
  }
  void zeros(int64_t count) { at_ += count; }

 private:
  std::string path_;
  std::ofstream file_;
  int64_t at_ = 0;
};

struct Tensor {
  std::string name;
  std::vector<int64_t> shape;
  bool index = false;  ///< int64, else f16
  int64_t count() const {
    int64_t product = 1;
    for (const int64_t extent : shape) product *= extent;
    return product;
  }
  int64_t bytes() const { return count() * (index ? 8 : 2); }
};

std::vector<Tensor> tensors_of(int64_t heads, int64_t tokens, int64_t d) {
  const std::vector<int64_t> shape{1, heads, tokens, d};
  return {
      {"q", shape}, {"k", shape}, {"v", shape}, {"out", {1, heads, 1, d}}, {"out_rows", {1}, true}};
}

std::string list_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t extent : shape) text += std::to_string(extent) + ", ";
  return text;
}

void write_safetensors(const std::string& path, const std::vector<Tensor>& tensors) {
  std::string header;
  int64_t at = 0;
  for (const Tensor& t : tensors) {
    std::string shape = list_text(t.shape);
    shape.resize(shape.size() - 2);
    header += (header.empty() ? "{\"" : ",\"") + t.name + "\":{\"dtype\":\"" +
              (t.index ? "I64" : "F16") + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
              std::to_string(at) + "," + std::to_string(at + t.bytes()) + "]}";
    at += t.bytes();
  }
  SparseFile file(path);
  file.write(safetensors_bytes(header + "}", ""));
  file.zeros(at);
}

std::string npy_header(const Tensor& t) {
  return npy_bytes(std::string("{'descr': '") + (t.index ? "<i8" : "<f2") +
                       "', 'fortran_order': False, 'shape': (" + list_text(t.shape) + "), }\n",
                   "");
}

void write_npy(const std::string& path, const Tensor& t) {
  SparseFile file(path);
  file.write(npy_header(t));
  file.zeros(t.bytes());
}

/// A zip archive member by member: some bytes, then zeros.
class ZeroZip {
 public:
  ZeroZip(const std::string& path, bool deflate) : file_(path), deflate_(deflate) {}
  ~ZeroZip() {
    const int64_t begin = file_.position();
    file_.write(directory_ + "PK\x05\x06" + little_endian(0, 4) + little_endian(members_, 2) +
                little_endian(members_, 2) + little_endian(directory_.size(), 4) +
                little_endian(static_cast<uint64_t>(begin), 4) + little_endian(0, 2));
  }

  void add(const std::string& name, const std::string& start, int64_t zeros) {
    const std::string packed = deflate_ ? pack(start, zeros) : "";
    const int64_t bytes = static_cast<int64_t>(start.size()) + zeros;
    const auto stored = deflate_ ? packed.size() : static_cast<uint64_t>(bytes);
    const std::string common = little_endian(0, 2) + little_endian(deflate_ ? 8 : 0, 2) +
                               little_endian(0, 4) + little_endian(checksum(start, zeros), 4) +
                               little_endian(stored, 4) +
                               little_endian(static_cast<uint64_t>(bytes), 4) +
                               little_endian(name.size(), 2) + little_endian(0, 2);
    directory_ += "PK\x01\x02" + little_endian(20, 2) + little_endian(20, 2) + common +
                  little_endian(0, 10) + little_endian(static_cast<uint64_t>(file_.position()), 4) +
                  name;
    file_.write("PK\x03\x04" + little_endian(20, 2) + common + name + (deflate_ ? packed : start));
    if (!deflate_) file_.zeros(zeros);
    ++members_;
  }

 private:
  /// That of zeros by halves: a pass over them all would take seconds.
  static uLong checksum_of_zeros(int64_t count) {
    if (count <= 1 << 20) {
      const std::string block(static_cast<size_t>(count), '\0');
      return crc32_z(0, reinterpret_cast<const Bytef*>(block.data()), block.size());
    }
    const int64_t half = count / 2;
    const uLong both = checksum_of_zeros(half);
    const uLong crc = crc32_combine(both, both, half);
    return count % 2 == 0 ? crc : crc32_combine(crc, checksum_of_zeros(1), 1);
  }
  static uint64_t checksum(const std::string& start, int64_t zeros) {
    const auto first = crc32_z(0, reinterpret_cast<const Bytef*>(start.data()), start.size());
    return crc32_combine(first, checksum_of_zeros(zeros), zeros);
  }

  static std::string pack(const std::string& start, int64_t zeros) {
    z_stream stream{};
    deflateInit2(&stream, 1, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    std::string packed;
    const auto add = [&](const std::string& bytes, size_t count, int flush) {
      // Beside what it is given, deflate holds back up to a window and a block.
      std::string piece(deflateBound(&stream, count) + (1 << 17), '\0');
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(count);
      stream.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream.avail_out = static_cast<uInt>(piece.size());
      deflate(&stream, flush);
      packed += piece.substr(0, piece.size() - stream.avail_out);
    };
    add(start, start.size(), Z_NO_FLUSH);
    const std::string block(1 << 20, '\0');
    for (int64_t left = zeros; left > 0; left -= static_cast<int64_t>(block.size())) {
      add(block, static_cast<size_t>(std::min(left, static_cast<int64_t>(block.size()))),
          Z_NO_FLUSH);
    }
    add("", 0, Z_FINISH);
    deflateEnd(&stream);
    return packed;
  }

  SparseFile file_;
  const bool deflate_;
  std::string directory_;
  uint64_t members_ = 0;
};

void write_npz(const std::string& path, const std::vector<Tensor>& tensors, bool deflate) {
  ZeroZip zip(path, deflate);
  for (const Tensor& t : tensors) zip.add(t.name + ".npy", npy_header(t), t.bytes());
}

void write_torch(const std::string& path, const std::vector<Tensor>& tensors) {
  using namespace pickled;
  std::string items;
  for (const Tensor& t : tensors) {
    std::vector<int64_t> strides(t.shape.size(), 1);
    for (size_t axis = t.shape.size() - 1; axis > 0; --axis) {
      strides[axis - 1] = strides[axis] * t.shape[axis];
    }
    items +=
        text(t.name) + tensor(storage(t.index ? "LongStorage" : "HalfStorage", t.name, t.count()),
                              0, t.shape, strides);
  }
  ZeroZip zip(path, false);
  zip.add("a/data.pkl", pickle(dict(items)), 0);
  for (const Tensor& t : tensors) zip.add("a/data/" + t.name, "", t.bytes());
}

/// A chunk as shuffle and deflate leave it. Elements alike stay alike when they are shuffled.
std::string packed_chunk(int64_t elements, bool random) {
  std::string bytes(static_cast<size_t>(2 * elements), '\0');
  uint32_t state = 1;
  if (random) {
    for (int64_t i = 0; i < elements; ++i) {
      state = state * 1664525 + 1013904223;
      bytes[static_cast<size_t>(i)] = static_cast<char>(state >> 24);
      // f16 of 0.0002 to 0.008, either sign
      bytes[static_cast<size_t>(elements + i)] =
          static_cast<char>(0x0c + (state >> 16 & 0x0f) + (state >> 15 & 1) * 0x80);
    }
  }
  uLongf size = compressBound(bytes.size());
  std::string packed(size, '\0');
  compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
            reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 1);
  packed.resize(size);
  return packed;
}

/// IEEE 754 binary16: 10 bits of mantissa, 5 of exponent.
hid_t half_type() {
  const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(type, 15, 10, 5, 0, 10);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, 15);
  return type;
}

/// Ids are left to H5Fclose.
void write_hdf5(const std::string& path, const std::vector<Tensor>& tensors, InputForm form) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  const bool packed = form == InputForm::hdf5_gzip || form == InputForm::hdf5_largest;
  for (const Tensor& t : tensors) {
    const std::vector<hsize_t> shape(t.shape.begin(), t.shape.end());
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
    std::vector<hsize_t> chunk;
    if (form != InputForm::hdf5 && shape.size() == 4) {
      const hsize_t most = (form == InputForm::hdf5_largest ? 16 << 20 : 512 << 10) / 2 / shape[3];
      const hsize_t rows = std::min(shape[2], most);
      chunk = {1, std::min(shape[1], most / rows), rows, shape[3]};
      H5Pset_chunk(creation, 4, chunk.data());
      if (packed) {
        H5Pset_alloc_time(creation, H5D_ALLOC_TIME_INCR);
        H5Pset_shuffle(creation);
        H5Pset_deflate(creation, 1);
      }
    }
    const hid_t dataset = H5Dcreate2(file, t.name.c_str(), t.index ? H5T_STD_I64LE : half_type(),
                                     space, H5P_DEFAULT, creation, H5P_DEFAULT);
    if (dataset < 0) throw std::runtime_error("cannot create the dataset " + t.name);
    if (!packed || chunk.empty()) continue;
    const bool random = form == InputForm::hdf5_largest && (t.name == "q" || t.name == "k");
    const std::string bytes =
        packed_chunk(static_cast<int64_t>(chunk[1] * chunk[2] * chunk[3]), random);
    for (hsize_t head = 0; head < shape[1]; head += chunk[1]) {
      for (hsize_t row = 0; row < shape[2]; row += chunk[2]) {
        const hsize_t at[] = {0, head, row, 0};
        H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, at, bytes.size(), bytes.data());
      }
    }
  }
  if (H5Fclose(file) < 0) throw std::runtime_error("cannot write " + path);
  H5Pclose(access);
}

}  // namespace

const std::vector<std::pair<InputForm, const char*>>& input_forms() {
  static const std::vector<std::pair<InputForm, const char*>> forms{
      {InputForm::safetensors, "safetensors"},
      {InputForm::npy, ".npy files"},
      {InputForm::npz_stored, "stored .npz"},
      {InputForm::npz_deflated, "deflated .npz"},
      {InputForm::torch, ".pt"},
      {InputForm::hdf5, "contiguous HDF5"},
      {InputForm::hdf5_chunked, "HDF5 in chunks"},
      {InputForm::hdf5_gzip, "HDF5 in packed chunks"},
      {InputForm::hdf5_largest, "HDF5 in the largest packed chunks"},
      {InputForm::named_folder, "a folder of files a head"}};
  return forms;
}

std::vector<std::string> write_large_input(InputForm form, const std::string& folder, int64_t heads,
                                           int64_t tokens, int64_t d) {
  const std::vector<Tensor> tensors = tensors_of(heads, tokens, d);
  const auto path = [&](const std::string& name) { return folder + "/" + name; };
  switch (form) {
    case InputForm::safetensors:
      write_safetensors(path("a.safetensors"), tensors);
      return {path("a.safetensors")};
    case InputForm::npy:
      for (size_t i = 0; i < 3; ++i) write_npy(path(tensors[i].name + ".npy"), tensors[i]);
      return {"--q", path("q.npy"), "--k", path("k.npy"), "--v", path("v.npy")};
    case InputForm::npz_stored:
    case InputForm::npz_deflated:
      write_npz(path("a.npz"), tensors, form == InputForm::npz_deflated);
      return {path("a.npz")};
    case InputForm::torch:
      write_torch(path("a.pt"), tensors);
      return {path("a.pt")};
    case InputForm::named_folder:
      for (int64_t head = 0; head < heads; ++head) {
        for (const char* name : {"q", "k", "v"}) {
          write_npy(path("attn_It5_L2_H" + std::to_string(head) + "_" + name + ".npy"),
                    {name, {tokens, d}});
        }
      }
      return {folder};
    default:
      write_hdf5(path("a.h5"), tensors, form);
      return {path("a.h5")};
  }
}

}  // namespace attnscope::test
