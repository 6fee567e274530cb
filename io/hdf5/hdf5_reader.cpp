#include "io/hdf5/hdf5_reader.h"

#include <algorithm>
#include <array>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace attnscope {

Hdf5Reader::Hdf5Reader(const std::string& path) : path_(path) {
  // Filters that a file names are not loaded from anywhere.
  check(H5PLset_loading_state(0), "plugins");
  Hdf5Properties access(H5Pcreate(H5P_FILE_ACCESS), path_, "file access properties");
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
  check(H5Pset_file_locking(access.id(), false, true), "file locking");
#endif
  file_ = Hdf5File(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, access.id()), path_,
                   "cannot be opened as HDF5");
}

void Hdf5Reader::check(herr_t result, const std::string& what) const {
  if (result < 0) throw hdf5_error(path_, what);
}

void Hdf5Reader::bad(const std::string& where, const std::string& what) const {
  throw file_error(path_, where, what);
}

bool Hdf5Reader::has_attribute(hid_t object, const char* name) const {
  const htri_t there = H5Aexists(object, name);
  if (there < 0) bad(std::string("attribute ") + name, "cannot be read");
  return there > 0;
}

std::string Hdf5Reader::text(hid_t object, const char* name) const {
  const std::string what = std::string("attribute ") + name;
  const Hdf5Attribute attribute(H5Aopen(object, name, H5P_DEFAULT), path_, what);
  const Hdf5Type type(H5Aget_type(attribute.id()), path_, what);
  if (H5Tget_class(type.id()) != H5T_STRING) bad(what, "is no string");
  if (H5Tis_variable_str(type.id()) > 0) {
    char* value = nullptr;
    const Hdf5Type memory(H5Tget_native_type(type.id(), H5T_DIR_DEFAULT), path_, what);
    check(H5Aread(attribute.id(), memory.id(), static_cast<void*>(&value)), what);
    std::string result = value == nullptr ? "" : value;
    H5free_memory(value);
    return result;
  }
  std::string result(H5Tget_size(type.id()), '\0');
  check(H5Aread(attribute.id(), type.id(), result.data()), what);
  return result.substr(0, result.find('\0'));
}

int64_t Hdf5Reader::integer(hid_t object, const char* name) const {
  const std::string what = std::string("attribute ") + name;
  const Hdf5Attribute attribute(H5Aopen(object, name, H5P_DEFAULT), path_, what);
  const Hdf5Type type(H5Aget_type(attribute.id()), path_, what);
  const Hdf5Space space(H5Aget_space(attribute.id()), path_, what);
  if (H5Tget_class(type.id()) != H5T_INTEGER || H5Sget_simple_extent_npoints(space.id()) != 1) {
    bad(what, "is no integer");
  }
  int64_t value = 0;
  check(H5Aread(attribute.id(), H5T_NATIVE_INT64, &value), what);
  return value;
}

Hdf5Dataset Hdf5Reader::dataset(hid_t parent, const std::string& name) const {
  return {H5Dopen2(parent, name.c_str(), H5P_DEFAULT), path_, "dataset " + name};
}

std::vector<int64_t> Hdf5Reader::shape(const Hdf5Dataset& d, const std::string& what) const {
  const Hdf5Space space(H5Dget_space(d.id()), path_, what);
  const int rank = H5Sget_simple_extent_ndims(space.id());
  if (rank < 0 || rank > 8) bad(what, "has an unexpected rank");
  std::vector<hsize_t> extents(static_cast<size_t>(rank));
  check(H5Sget_simple_extent_dims(space.id(), extents.data(), nullptr), what);
  std::vector<int64_t> result;
  for (const hsize_t extent : extents) {
    if (extent > static_cast<hsize_t>(INT64_MAX)) bad(what, "has an extent beyond 2^63");
    result.push_back(static_cast<int64_t>(extent));
  }
  return result;
}

int64_t Hdf5Reader::address(const Hdf5Dataset& d, const std::string& what) const {
  const Hdf5Properties creation(H5Dget_create_plist(d.id()), path_, what);
  if (H5Pget_layout(creation.id()) != H5D_CONTIGUOUS || H5Pget_external_count(creation.id()) != 0) {
    bad(what, "is not stored as attnscope stores it");
  }
  const haddr_t offset = H5Dget_offset(d.id());
  if (offset == HADDR_UNDEF || offset > static_cast<haddr_t>(INT64_MAX)) {
    bad(what, "has no place in the file");
  }
  return static_cast<int64_t>(offset);
}

std::vector<Hdf5Filter> Hdf5Reader::filters(const Hdf5Properties& creation) const {
  const int count = H5Pget_nfilters(creation.id());
  check(count, "filters");
  std::vector<Hdf5Filter> filters;
  for (int i = 0; i < count; ++i) {
    std::array<unsigned, 16> values{};
    size_t used = values.size();
    std::array<char, 64> name{};
    unsigned flags = 0, config = 0;
    const H5Z_filter_t id = H5Pget_filter2(creation.id(), static_cast<unsigned>(i), &flags, &used,
                                           values.data(), name.size(), name.data(), &config);
    check(id, "filters");
    name.back() = '\0';
    used = std::min(used, values.size());
    filters.push_back({static_cast<int>(id), name.data(), {values.begin(), values.begin() + used}});
  }
  return filters;
}

std::vector<int64_t> Hdf5Reader::integers(hid_t group, const std::string& name,
                                          int64_t most) const {
  const auto extent = shape(dataset(group, name), name);
  if (extent.size() != 1) bad(name, "is no list of indices");
  return integer_rows(group, name, most);
}

std::vector<int64_t> Hdf5Reader::integer_rows(hid_t group, const std::string& name,
                                              int64_t most) const {
  const Hdf5Dataset d = dataset(group, name);
  address(d, name);
  const auto extent = shape(d, name);
  const auto count = checked_count(extent);
  if (extent.empty() || extent.size() > 2 || !count || *count < 1 || *count > most) {
    bad(name, "is no list of indices");
  }
  std::vector<int64_t> values(static_cast<size_t>(*count));
  check(H5Dread(d.id(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), name);
  return values;
}

std::vector<std::string> Hdf5Reader::strings(const Hdf5Dataset& d, const std::string& what,
                                             int64_t most) const {
  int64_t count = 1;
  for (const int64_t extent : shape(d, what)) {
    if (extent < 0 || extent > most || (count *= extent) > most) bad(what, "is too long");
  }
  if (count == 0) return {};
  address(d, what);
  const Hdf5Type type(H5Dget_type(d.id()), path_, what);
  if (H5Tis_variable_str(type.id()) <= 0) bad(what, "is no list of names");
  std::vector<char*> texts(static_cast<size_t>(count));
  check(H5Dread(d.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, texts.data()), what);
  std::vector<std::string> result;
  for (char* text : texts) {
    result.emplace_back(text == nullptr ? "" : text);
    H5free_memory(text);
  }
  return result;
}

}  // namespace attnscope
