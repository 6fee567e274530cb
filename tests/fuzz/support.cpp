#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "io/tensors/hdf5_tensors.h"
#include "tests/fuzz/targets.h"

namespace attnscope {

/// HDF5 files are read in child processes, which costs too much here: what is hostile of them is
/// left to tests/data/hostile.
std::shared_ptr<const TensorFile> open_hdf5_tensors(std::shared_ptr<const InputFile> file,
                                                    const ReadControl&) {
  throw file_error(file->path().string(), "", "HDF5 is not fuzzed");
}

namespace test {

std::shared_ptr<const ByteSource> fuzz_bytes(const uint8_t* data, size_t size) {
  return std::make_shared<MemoryBytes>(std::as_bytes(std::span(data, size)), "input");
}

void touch(const TensorSource& tensor) {
  const std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
  const auto element = static_cast<size_t>(dtype_bytes(tensor.dtype()));
  const std::vector<int64_t> one(shape.size(), 1);
  std::vector<int64_t> at(shape.size(), 0);
  std::byte value[8];
  tensor.read(at, one, value);

  std::vector<int64_t> count(shape.size(), 1);
  size_t elements = 1;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    at[axis] = (shape[axis] - 1) / 2;
    if (elements > 200) continue;
    count[axis] = std::min<int64_t>(3, shape[axis] - at[axis]);
    elements *= static_cast<size_t>(count[axis]);
  }
  std::vector<std::byte> box(elements * element);
  tensor.read(at, count, box.data());
  for (size_t axis = 0; axis < shape.size(); ++axis) at[axis] += count[axis] - 1;
  tensor.read(at, one, value);
  if (std::memcmp(value, box.data() + box.size() - element, element) != 0) std::abort();

  for (size_t axis = 0; axis < shape.size(); ++axis) at[axis] = shape[axis] - 1;
  tensor.read(at, one, value);
}

void touch(const TensorFile& file) {
  for (const std::string& key : file.keys()) {
    try {
      touch(*file.tensor(key));
    } catch (const Error&) {
    }
  }
}

const std::filesystem::path& fuzz_folder() {
  struct Folder {
    std::filesystem::path path;
    Folder() {
      path = std::filesystem::exists("/dev/shm") ? std::filesystem::path("/dev/shm")
                                                 : std::filesystem::temp_directory_path();
      path /= "attnscope-fuzz-" + std::to_string(getpid());
      std::filesystem::create_directories(path);
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

FuzzFile::FuzzFile(std::string_view name) : path_(fuzz_folder() / name) {
  descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor_ < 0) std::abort();
}

FuzzFile::~FuzzFile() { close(descriptor_); }

void FuzzFile::write(std::string_view bytes) {
  const auto size = static_cast<ssize_t>(bytes.size());
  if (ftruncate(descriptor_, size) != 0) std::abort();
  if (pwrite(descriptor_, bytes.data(), bytes.size(), 0) != size) std::abort();
}

}  // namespace test
}  // namespace attnscope
