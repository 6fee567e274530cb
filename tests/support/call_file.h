#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/tensor_files.h"

namespace attnscope::test {

/// Builds safetensors files of zeros and ones.
class CallFile {
 public:
  CallFile& tensor(const std::string& name, const std::string& dtype, std::vector<int64_t> shape,
                   std::string data = "") {
    int64_t count = 1;
    std::string text;
    for (int64_t extent : shape) {
      count *= extent;
      text += (text.empty() ? "" : ",") + std::to_string(extent);
    }
    const int64_t element = dtype == "F64" || dtype == "I64" ? 8
                            : dtype == "F32"                 ? 4
                            : dtype == "BOOL" || dtype.ends_with("8") || dtype.starts_with("F8")
                                ? 1
                                : 2;
    if (data.empty()) data = std::string(static_cast<size_t>(count * element), '\0');
    const auto begin = static_cast<int64_t>(data_.size());
    data_ += data;
    header_ += ",\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":[)" + text +
               R"(],"data_offsets":[)" + std::to_string(begin) + "," +
               std::to_string(data_.size()) + "]}";
    return *this;
  }
  CallFile& pair(std::vector<int64_t> q, std::vector<int64_t> k, const std::string& dtype = "F32") {
    return tensor("q", dtype, std::move(q)).tensor("k", dtype, std::move(k));
  }
  CallFile& fact(const std::string& name, const std::string& value) {
    std::string quoted;
    for (char c : value) {
      if (c == '"') quoted.push_back('\\');
      quoted.push_back(c);
    }
    metadata_ += ",\"" + name + "\":\"" + quoted + "\"";
    return *this;
  }
  /// Which version of the format it says to be in; 0: none.
  CallFile& version(int version) {
    version_ = version;
    return *this;
  }
  void write(const std::filesystem::path& path) const {
    std::string facts = metadata_;
    if (version_ > 0) {
      facts = ",\"format\":\"attnscope-capture/" + std::to_string(version_) + "\"" + facts;
    }
    if (!facts.empty()) facts.erase(0, 1);
    write_bytes(path,
                safetensors_bytes("{\"__metadata__\":{" + facts + "}" + header_ + "}", data_));
  }

 private:
  int version_ = 1;
  std::string metadata_, header_, data_;
};

}  // namespace attnscope::test
