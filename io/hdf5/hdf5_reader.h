#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/hdf5/hdf5_handle.h"

namespace attnscope {

/// A step in which chunks are packed, as the file tells it.
struct Hdf5Filter {
  int id = 0;
  std::string name;
  std::vector<unsigned> values;  ///< its parameters, the first 16
};

/// Reads pieces of a file with the HDF5 library, trusting nothing: for use in the helper process,
/// within an Hdf5Session. Every method throws Error(file) that names the file and the place.
class Hdf5Reader {
 public:
  /// Opens for reading, without filters from elsewhere and without file locks.
  explicit Hdf5Reader(const std::string& path);

  const std::string& path() const { return path_; }
  hid_t root() const { return file_.id(); }

  void check(herr_t result, const std::string& what) const;
  [[noreturn]] void bad(const std::string& where, const std::string& what) const;

  bool has_attribute(hid_t object, const char* name) const;
  /// A string attribute of either kind.
  std::string text(hid_t object, const char* name) const;
  /// An attribute of one integer.
  int64_t integer(hid_t object, const char* name) const;
  Hdf5Dataset dataset(hid_t parent, const std::string& name) const;
  /// At most eight extents.
  std::vector<int64_t> shape(const Hdf5Dataset& d, const std::string& what) const;
  /// Where a contiguous dataset stands, in this very file.
  int64_t address(const Hdf5Dataset& d, const std::string& what) const;
  /// A dataset's filters, in the order in which they packed it.
  std::vector<Hdf5Filter> filters(const Hdf5Properties& creation) const;
  /// A contiguous list of 1 to `most` integers.
  std::vector<int64_t> integers(hid_t group, const std::string& name, int64_t most) const;
  /// Contiguous integers of one axis or two, at most `most`, row by row.
  std::vector<int64_t> integer_rows(hid_t group, const std::string& name, int64_t most) const;
  /// The strings of variable length of a dataset of at most `most` elements, in its order.
  std::vector<std::string> strings(const Hdf5Dataset& d, const std::string& what,
                                   int64_t most) const;

 private:
  const std::string path_;
  Hdf5File file_;
};

}  // namespace attnscope
