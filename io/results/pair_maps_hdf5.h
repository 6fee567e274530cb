#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/results/table_hdf5.h"

namespace attnscope {

/// An axis of maps of pairs: numbers, and perhaps what each is called (NAME_name).
struct PairAxis {
  std::string name, long_name;
  std::vector<int32_t> numbers;
  std::vector<std::string> words = {};
};

/// float32 numbers over the pairs and some of the axes.
struct PairVariable {
  std::string name, long_name;
  std::vector<size_t> axes;  ///< their places among the file's
};

/// The structure of a file of numbers over pairs of heads.
struct PairMapsLayout {
  std::vector<std::pair<std::string, std::string>> texts;  ///< attributes of the root
  std::vector<std::pair<std::string, int64_t>> numbers;    ///< as well
  std::vector<TableColumn> pairs;                          ///< a value a pair, equally long
  std::vector<PairAxis> axes;
  std::vector<PairVariable> variables;
};

/// An HDF5 file (netCDF-4) of numbers over pairs of heads, which is written pair by pair. Not
/// thread-safe.
class PairMapsFile {
 public:
  /// Creates `path`, which must not exist. Throws Error(file), as all methods do.
  PairMapsFile(const PairMapsLayout& layout, const std::filesystem::path& path);
  ~PairMapsFile();

  /// All numbers of a variable for a pair, row-major.
  void write(size_t variable, int64_t pair, std::span<const float> values);
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attnscope
