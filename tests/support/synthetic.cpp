#include "tests/support/synthetic.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "core/base/dtype.h"

namespace attnscope::test {

namespace {

/// The beginning of a file with q and k of this shape in bf16.
std::ofstream begin_capture(const std::string& path, int64_t heads, int64_t tokens, int64_t d) {
  const int64_t bytes = heads * tokens * d * 2;
  const std::string shape =
      "[1," + std::to_string(heads) + "," + std::to_string(tokens) + "," + std::to_string(d) + "]";
  const auto tensor = [&](const char* name, int64_t begin) {
    return std::string("\"") + name + R"(":{"dtype":"BF16","shape":)" + shape +
           R"(,"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(begin + bytes) +
           "]}";
  };
  const std::string header = R"({"__metadata__":{"format":"attnscope-capture/1"},)" +
                             tensor("q", 0) + "," + tensor("k", bytes) + "}";
  std::ofstream file(path, std::ios::binary);
  const uint64_t length = header.size();
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << header;
  return file;
}

}  // namespace

void write_sparse_heads(const std::string& path, int64_t heads, int64_t tokens, int64_t d) {
  begin_capture(path, heads, tokens, d).close();
  const auto header = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, header + static_cast<uint64_t>(2 * heads * tokens * d * 2));
}

void write_synthetic_head(const std::string& path, int64_t tokens, int64_t d) {
  std::ofstream file = begin_capture(path, 1, tokens, d);
  std::vector<bf16> row(static_cast<size_t>(d));
  uint64_t state = 1;
  for (int64_t i = 0; i < 2 * tokens; ++i) {
    for (bf16& value : row) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      value = to_bf16(static_cast<float>(static_cast<int64_t>(state >> 40)) * 0x1p-22f - 2.0f);
    }
    file.write(reinterpret_cast<const char*>(row.data()), d * 2);
  }
  if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace attnscope::test
