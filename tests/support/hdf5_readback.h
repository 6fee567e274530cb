#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attnscope::test {

/// A dataset read whole with the HDF5 library, converted to double as its attributes say
/// (scale_factor, the u8 log code).
struct DatasetValues {
  std::vector<int64_t> shape;
  std::vector<double> values;
};

/// Throws std::runtime_error when it cannot be read.
DatasetValues read_dataset(const std::string& file, const std::string& path);
/// A text attribute of an object, the file's root unless told.
std::string read_text_attribute(const std::string& file, const std::string& name,
                                const std::string& object = "/");
/// Member names of a group, in name order.
std::vector<std::string> group_members(const std::string& file, const std::string& path);

}  // namespace attnscope::test
