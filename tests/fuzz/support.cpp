#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "io/tensor_file.h"
#include "tests/fuzz/targets.h"

namespace attnscope::test {

std::string fuzz_file(const uint8_t* data, size_t size, const std::string& name) {
  static const std::filesystem::path folder = [] {
    std::filesystem::path path = std::filesystem::exists("/dev/shm")
                                     ? std::filesystem::path("/dev/shm")
                                     : std::filesystem::temp_directory_path();
    path /= "attnscope-fuzz-" + std::to_string(getpid());
    std::filesystem::create_directories(path);
    return path;
  }();
  const std::filesystem::path path = folder / name;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  return path.string();
}

void open_and_touch(const std::string& path) {
  try {
    const auto file = open_tensor_file(path);
    for (const std::string& key : file->keys()) {
      try {
        const auto tensor = file->tensor(key);
        std::vector<int64_t> at(tensor->shape().size(), 0);
        const std::vector<int64_t> one(at.size(), 1);
        bool empty = false;
        for (const int64_t extent : tensor->shape()) empty |= extent == 0;
        if (empty) continue;
        std::byte value[8];
        tensor->read(at, one, value);
        for (size_t axis = 0; axis < at.size(); ++axis) at[axis] = tensor->shape()[axis] - 1;
        tensor->read(at, one, value);
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
}

}  // namespace attnscope::test
