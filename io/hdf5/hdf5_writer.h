#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "io/hdf5/hdf5_handle.h"

namespace attnscope {

/// How a dataset's bytes come to be.
enum class Hdf5Storage : uint8_t {
  contiguous,    ///< one block, written through the library
  preallocated,  ///< one block with its place in the file fixed at creation, written by others
};

/// A box of a virtual dataset is a whole dataset of another file, or of this one (file "."), with
/// as many elements in their order.
struct Hdf5Elsewhere {
  std::string file, object;
  std::vector<int64_t> begin, count;  ///< the box
  std::vector<int64_t> shape;         ///< of the other dataset
};

/// Creates one HDF5 file that is also valid netCDF-4: format 1.10, creation order kept, no time
/// stamps, little-endian types, UTF-8 strings. Everything throws Error(file) naming file and
/// object. Needs an Hdf5Session around its whole life; not thread-safe.
class Hdf5Writer {
 public:
  /// Where data of at least so many bytes stands: at multiples of `bytes`, a power of two. Unless
  /// told, what has 64 KiB starts on a page of 4 KiB.
  struct Alignment {
    int64_t least = 65536, bytes = 4096;
  };
  /// The file must not exist. On destruction without close() the file stays unfinished.
  explicit Hdf5Writer(const std::filesystem::path& path) : Hdf5Writer(path, Alignment()) {}
  Hdf5Writer(const std::filesystem::path& path, const Alignment& alignment);
  /// Writes everything out and closes; the Error tells where that failed.
  void close();

  hid_t root() const { return file_.id(); }
  Hdf5Group create_group(hid_t parent, const std::string& name) const;
  /// An empty shape makes a scalar.
  Hdf5Dataset create_dataset(hid_t parent, const std::string& name, hid_t type,
                             std::span<const int64_t> shape, Hdf5Storage storage) const;
  /// Without filter, allocated at once and never filled, so that its chunks stand one after
  /// another in the file, row-major, at their full size.
  Hdf5Dataset create_chunked(hid_t parent, const std::string& name, hid_t type,
                             std::span<const int64_t> shape, std::span<const int64_t> chunk) const;

  /// Whole datasets of numbers: created, written and returned.
  template <typename T>
  Hdf5Dataset write(hid_t parent, const std::string& name, std::span<const T> values,
                    std::span<const int64_t> shape) const {
    Hdf5Dataset dataset =
        create_dataset(parent, name, file_type<T>(), shape, Hdf5Storage::contiguous);
    write_all(dataset, memory_type<T>(), values.data(), name);
    return dataset;
  }
  /// Chunks that pass the library's shuffle (elements of several bytes) and deflate filters; they
  /// are stored as they come.
  Hdf5Dataset create_deflated(hid_t parent, const std::string& name, hid_t type,
                              std::span<const int64_t> shape, std::span<const int64_t> chunk,
                              int64_t element_bytes) const;
  /// A chunk that has passed the filters already; `begin` is its first element.
  void write_stored_chunk(const Hdf5Dataset& dataset, std::span<const int64_t> begin,
                          std::span<const std::byte> stored, const std::string& name) const;
  /// An empty list that append() makes longer, in chunks of `chunk` elements.
  Hdf5Dataset create_growing(hid_t parent, const std::string& name, hid_t type,
                             int64_t chunk) const;
  /// Adds values to a list of `length` elements.
  template <typename T>
  void append(const Hdf5Dataset& dataset, std::span<const T> values, int64_t length,
              const std::string& name) const {
    if (values.empty()) return;
    extend(dataset, length + static_cast<int64_t>(values.size()), name);
    const auto count = static_cast<int64_t>(values.size());
    write_block<T>(dataset, values, std::span(&length, 1), std::span(&count, 1), name);
  }
  /// A box of a dataset.
  template <typename T>
  void write_block(const Hdf5Dataset& dataset, std::span<const T> values,
                   std::span<const int64_t> begin, std::span<const int64_t> count,
                   const std::string& name) const {
    write_box(dataset, memory_type<T>(), values.data(), begin, count, name);
  }
  /// The values of index `item` of a dataset's first axis; `shape` is the whole dataset's.
  template <typename T>
  void write_item(const Hdf5Dataset& dataset, int64_t item, std::span<const T> values,
                  std::span<const int64_t> shape, const std::string& name) const {
    std::vector<int64_t> begin(shape.size(), 0);
    std::vector<int64_t> count(shape.begin(), shape.end());
    begin[0] = item;
    count[0] = 1;
    write_block<T>(dataset, values, begin, count, name);
  }
  /// A dataset whose boxes stand in other datasets, in files of names relative to this one's
  /// folder. Where such a file is gone, floating types read as NaN, signed integers as −1, others
  /// as 0.
  Hdf5Dataset create_virtual(hid_t parent, const std::string& name, hid_t type,
                             std::span<const int64_t> shape,
                             std::span<const Hdf5Elsewhere> pieces) const;
  Hdf5Dataset write_strings(hid_t parent, const std::string& name,
                            std::span<const std::string> values,
                            std::span<const int64_t> shape) const;

  /// A link NAME to an object of another file, whose name is relative to this one's folder.
  void link_external(hid_t parent, const std::string& name, const std::string& file,
                     const std::string& object) const;

  /// Scalar attributes.
  void attribute(hid_t object, const std::string& name, std::string_view value) const;
  template <typename T>
  requires std::is_arithmetic_v<T>
  void attribute(hid_t object, const std::string& name, T value) const {
    attribute_values(object, name, file_type<T>(), memory_type<T>(), &value, 0);
  }
  /// A list of numbers.
  template <typename T>
  void attribute(hid_t object, const std::string& name, std::span<const T> values) const {
    attribute_values(object, name, file_type<T>(), memory_type<T>(), values.data(), values.size());
  }

  /// Makes a dataset a dimension scale. With `variable` false netCDF tools see the dimension only,
  /// not a variable of the same name.
  void make_scale(const Hdf5Dataset& dataset, const std::string& name, int64_t extent,
                  bool variable = true) const;
  /// scales[i] becomes the scale of axis i.
  void attach_scales(const Hdf5Dataset& dataset, std::span<const Hdf5Dataset* const> scales) const;

  /// Where a preallocated dataset's bytes start in the file.
  int64_t address(const Hdf5Dataset& dataset) const;
  /// Where chunk 0 of a chunked dataset starts; checks that the last one stands where it must.
  int64_t chunk_base(const Hdf5Dataset& dataset, std::span<const int64_t> shape,
                     std::span<const int64_t> chunk, int64_t chunk_bytes) const;

  /// IEEE binary16, which the library has no predefined type for.
  hid_t half_type() const { return half_type_.id(); }
  template <typename T>
  static hid_t file_type() {
    if constexpr (std::is_same_v<T, float>) return H5T_IEEE_F32LE;
    if constexpr (std::is_same_v<T, double>) return H5T_IEEE_F64LE;
    if constexpr (std::is_same_v<T, int32_t>) return H5T_STD_I32LE;
    if constexpr (std::is_same_v<T, int64_t>) return H5T_STD_I64LE;
    if constexpr (std::is_same_v<T, uint32_t>) return H5T_STD_U32LE;
    if constexpr (std::is_same_v<T, uint64_t>) return H5T_STD_U64LE;
    if constexpr (std::is_same_v<T, uint8_t>) return H5T_STD_U8LE;
  }

 private:
  template <typename T>
  static hid_t memory_type() {
    if constexpr (std::is_same_v<T, float>) return H5T_NATIVE_FLOAT;
    if constexpr (std::is_same_v<T, double>) return H5T_NATIVE_DOUBLE;
    if constexpr (std::is_same_v<T, int32_t>) return H5T_NATIVE_INT32;
    if constexpr (std::is_same_v<T, int64_t>) return H5T_NATIVE_INT64;
    if constexpr (std::is_same_v<T, uint32_t>) return H5T_NATIVE_UINT32;
    if constexpr (std::is_same_v<T, uint64_t>) return H5T_NATIVE_UINT64;
    if constexpr (std::is_same_v<T, uint8_t>) return H5T_NATIVE_UINT8;
  }
  void write_box(const Hdf5Dataset& dataset, hid_t memory_type, const void* values,
                 std::span<const int64_t> begin, std::span<const int64_t> count,
                 const std::string& name) const;
  void extend(const Hdf5Dataset& dataset, int64_t length, const std::string& name) const;
  void write_all(const Hdf5Dataset& dataset, hid_t memory_type, const void* values,
                 const std::string& name) const;
  /// count 0: one scalar.
  void attribute_values(hid_t object, const std::string& name, hid_t file_type, hid_t memory_type,
                        const void* values, size_t count) const;
  Hdf5Space make_space(std::span<const int64_t> shape, const std::string& name) const;
  Hdf5Properties make_properties(hid_t kind) const;
  void check(herr_t result, const std::string& what) const;

  std::string path_;
  Hdf5File file_;
  Hdf5Type half_type_;
  Hdf5Type string_type_;
  Hdf5Properties link_names_;
};

}  // namespace attnscope
