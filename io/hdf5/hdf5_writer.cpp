#include "io/hdf5/hdf5_writer.h"

#include <hdf5_hl.h>

#include <algorithm>
#include <cstdio>
#include <limits>

namespace attnscope {
namespace {

/// Up to this many attributes or links stand in an object's header, which spares a heap and an
/// index each.
constexpr unsigned kMaxCompact = 64;
constexpr unsigned kMinDense = 48;
constexpr unsigned kCreationOrder = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;

std::vector<hsize_t> to_extents(std::span<const int64_t> shape) {
  return {shape.begin(), shape.end()};
}

/// The format's strings end at a NUL: one within a text becomes U+FFFD, so that nothing is cut off.
std::string without_nul(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\0') {
      result += "\xef\xbf\xbd";
    } else {
      result += c;
    }
  }
  return result;
}

/// The library reads a percent sign in the name of a virtual dataset's source as a format, two as
/// one.
std::string without_formats(const std::string& name) {
  std::string result;
  for (const char c : name) result.append(c == '%' ? 2 : 1, c);
  return result;
}

int64_t to_offset(haddr_t address, const std::string& file) {
  if (address == HADDR_UNDEF || address > static_cast<haddr_t>(INT64_MAX)) {
    throw file_error(file, "", "the HDF5 library did not preallocate a dataset");
  }
  return static_cast<int64_t>(address);
}

}  // namespace

Hdf5Writer::Hdf5Writer(const std::filesystem::path& path, const Alignment& alignment)
    : path_(path.string()) {
  Hdf5Properties access(H5Pcreate(H5P_FILE_ACCESS), path_, "file access properties");
  check(H5Pset_libver_bounds(access.id(), H5F_LIBVER_V110, H5F_LIBVER_V110), "format 1.10");
  check(H5Pset_alignment(access.id(), static_cast<hsize_t>(alignment.least),
                         static_cast<hsize_t>(alignment.bytes)),
        "alignment");
  // Data in the library's sieve buffer and chunk cache is written when a dataset is closed, where a
  // failure goes unnoticed; without them the write itself fails.
  check(H5Pset_sieve_buf_size(access.id(), 0), "sieve buffer");
  check(H5Pset_cache(access.id(), 0, 521, 0, 0.75), "chunk cache");
  check(H5Pset_fclose_degree(access.id(), H5F_CLOSE_STRONG), "close degree");
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
  // Writers keep apart by a lock of our own; the library's would fail on file systems without
  // flock.
  check(H5Pset_file_locking(access.id(), false, true), "file locking");
#endif
  Hdf5Properties creation = make_properties(H5P_FILE_CREATE);
  check(H5Pset_link_creation_order(creation.id(), kCreationOrder), "link order");
  check(H5Pset_link_phase_change(creation.id(), kMaxCompact, kMinDense), "link storage");
  file_ = Hdf5File(H5Fcreate(path_.c_str(), H5F_ACC_EXCL, creation.id(), access.id()), path_,
                   "cannot be created");
  half_type_ = Hdf5Type(H5Tcopy(H5T_IEEE_F32LE), path_, "float16 type");
  check(H5Tset_fields(half_type_.id(), 15, 10, 5, 0, 10), "float16 type");
  check(H5Tset_size(half_type_.id(), 2), "float16 type");
  check(H5Tset_ebias(half_type_.id(), 15), "float16 type");
  string_type_ = Hdf5Type(H5Tcopy(H5T_C_S1), path_, "string type");
  check(H5Tset_size(string_type_.id(), H5T_VARIABLE), "string type");
  check(H5Tset_cset(string_type_.id(), H5T_CSET_UTF8), "string type");
  link_names_ = Hdf5Properties(H5Pcreate(H5P_LINK_CREATE), path_, "link properties");
  check(H5Pset_char_encoding(link_names_.id(), H5T_CSET_UTF8), "link properties");
}

void Hdf5Writer::close() {
  // H5Fclose was seen to succeed on a full disk; the flush before it tells.
  check(H5Fflush(file_.id(), H5F_SCOPE_GLOBAL), "flush");
  check(file_.close(), "close");
}

Hdf5Group Hdf5Writer::create_group(hid_t parent, const std::string& name) const {
  const Hdf5Properties creation = make_properties(H5P_GROUP_CREATE);
  check(H5Pset_link_creation_order(creation.id(), kCreationOrder), name);
  check(H5Pset_link_phase_change(creation.id(), kMaxCompact, kMinDense), name);
  return {H5Gcreate2(parent, name.c_str(), link_names_.id(), creation.id(), H5P_DEFAULT), path_,
          "group " + name};
}

Hdf5Dataset Hdf5Writer::create_dataset(hid_t parent, const std::string& name, hid_t type,
                                       std::span<const int64_t> shape, Hdf5Storage storage) const {
  const Hdf5Properties creation = make_properties(H5P_DATASET_CREATE);
  if (storage == Hdf5Storage::preallocated) {
    check(H5Pset_alloc_time(creation.id(), H5D_ALLOC_TIME_EARLY), name);
    check(H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER), name);
  }
  const Hdf5Space space = make_space(shape, name);
  return {H5Dcreate2(parent, name.c_str(), type, space.id(), link_names_.id(), creation.id(),
                     H5P_DEFAULT),
          path_, "dataset " + name};
}

Hdf5Dataset Hdf5Writer::create_chunked(hid_t parent, const std::string& name, hid_t type,
                                       std::span<const int64_t> shape,
                                       std::span<const int64_t> chunk) const {
  const Hdf5Properties creation = make_properties(H5P_DATASET_CREATE);
  const std::vector<hsize_t> extents = to_extents(chunk);
  check(H5Pset_chunk(creation.id(), static_cast<int>(extents.size()), extents.data()), name);
  check(H5Pset_alloc_time(creation.id(), H5D_ALLOC_TIME_EARLY), name);
  check(H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER), name);
  const Hdf5Space space = make_space(shape, name);
  return {H5Dcreate2(parent, name.c_str(), type, space.id(), link_names_.id(), creation.id(),
                     H5P_DEFAULT),
          path_, "dataset " + name};
}

Hdf5Dataset Hdf5Writer::write_strings(hid_t parent, const std::string& name,
                                      std::span<const std::string> values,
                                      std::span<const int64_t> shape) const {
  Hdf5Dataset dataset =
      create_dataset(parent, name, string_type_.id(), shape, Hdf5Storage::contiguous);
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const std::string& value : values) texts.push_back(without_nul(value));
  std::vector<const char*> pointers;
  pointers.reserve(values.size());
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  write_all(dataset, string_type_.id(), pointers.data(), name);
  return dataset;
}

void Hdf5Writer::attribute(hid_t object, const std::string& name, std::string_view value) const {
  const std::string text = without_nul(value);
  const char* pointer = text.c_str();
  attribute_values(object, name, string_type_.id(), string_type_.id(), &pointer, 0);
}

void Hdf5Writer::attribute_values(hid_t object, const std::string& name, hid_t file_type,
                                  hid_t memory_type, const void* values, size_t count) const {
  const auto extent = static_cast<int64_t>(count);
  const Hdf5Space space =
      make_space(count == 0 ? std::span<const int64_t>() : std::span(&extent, 1), name);
  const Hdf5Attribute attribute(
      H5Acreate2(object, name.c_str(), file_type, space.id(), H5P_DEFAULT, H5P_DEFAULT), path_,
      "attribute " + name);
  check(H5Awrite(attribute.id(), memory_type, values), "attribute " + name);
}

void Hdf5Writer::make_scale(const Hdf5Dataset& dataset, const std::string& name, int64_t extent,
                            bool variable) const {
  std::string label = name;
  if (!variable) {
    // The netCDF-4 format's own wording, the extent right-aligned in ten places.
    char number[32];
    std::snprintf(number, sizeof number, "%10lld", static_cast<long long>(extent));
    label = std::string("This is a netCDF dimension but not a netCDF variable.") + number;
  }
  check(H5DSset_scale(dataset.id(), label.c_str()), "dimension scale " + name);
}

void Hdf5Writer::attach_scales(const Hdf5Dataset& dataset,
                               std::span<const Hdf5Dataset* const> scales) const {
  for (size_t axis = 0; axis < scales.size(); ++axis) {
    check(H5DSattach_scale(dataset.id(), scales[axis]->id(), static_cast<unsigned>(axis)),
          "dimension scale of axis " + std::to_string(axis));
  }
}

int64_t Hdf5Writer::address(const Hdf5Dataset& dataset) const {
  return to_offset(H5Dget_offset(dataset.id()), path_);
}

int64_t Hdf5Writer::chunk_base(const Hdf5Dataset& dataset, std::span<const int64_t> shape,
                               std::span<const int64_t> chunk, int64_t chunk_bytes) const {
  std::vector<hsize_t> at(shape.size(), 0);
  unsigned filters = 0;
  haddr_t first = HADDR_UNDEF;
  haddr_t last = HADDR_UNDEF;
  hsize_t bytes = 0;
  check(H5Dget_chunk_info_by_coord(dataset.id(), at.data(), &filters, &first, &bytes), "chunk 0");
  int64_t chunks = 1;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const int64_t count = (shape[axis] + chunk[axis] - 1) / chunk[axis];
    at[axis] = static_cast<hsize_t>(count - 1) * static_cast<hsize_t>(chunk[axis]);
    chunks *= count;
  }
  check(H5Dget_chunk_info_by_coord(dataset.id(), at.data(), &filters, &last, &bytes),
        "the last chunk");
  const int64_t base = to_offset(first, path_);
  if (to_offset(last, path_) != base + (chunks - 1) * chunk_bytes ||
      bytes != static_cast<hsize_t>(chunk_bytes)) {
    throw file_error(path_, "", "the HDF5 library did not lay out the chunks one after another");
  }
  return base;
}

void Hdf5Writer::write_all(const Hdf5Dataset& dataset, hid_t memory_type, const void* values,
                           const std::string& name) const {
  check(H5Dwrite(dataset.id(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values),
        "dataset " + name);
}

void Hdf5Writer::write_box(const Hdf5Dataset& dataset, hid_t memory_type, const void* values,
                           std::span<const int64_t> begin, std::span<const int64_t> count,
                           const std::string& name) const {
  const Hdf5Space file_space(H5Dget_space(dataset.id()), path_, name);
  const std::vector<hsize_t> start = to_extents(begin);
  const std::vector<hsize_t> extent = to_extents(count);
  check(H5Sselect_hyperslab(file_space.id(), H5S_SELECT_SET, start.data(), nullptr, extent.data(),
                            nullptr),
        name);
  const Hdf5Space memory_space = make_space(count, name);
  check(
      H5Dwrite(dataset.id(), memory_type, memory_space.id(), file_space.id(), H5P_DEFAULT, values),
      name);
}

void Hdf5Writer::link_external(hid_t parent, const std::string& name, const std::string& file,
                               const std::string& object) const {
  check(H5Lcreate_external(file.c_str(), object.c_str(), parent, name.c_str(), link_names_.id(),
                           H5P_DEFAULT),
        "link " + name);
}

void Hdf5Writer::extend(const Hdf5Dataset& dataset, int64_t length, const std::string& name) const {
  const auto extent = static_cast<hsize_t>(length);
  check(H5Dset_extent(dataset.id(), &extent), name);
}

Hdf5Dataset Hdf5Writer::create_virtual(hid_t parent, const std::string& name, hid_t type,
                                       std::span<const int64_t> shape,
                                       std::span<const Hdf5Elsewhere> pieces) const {
  const Hdf5Properties creation = make_properties(H5P_DATASET_CREATE);
  const Hdf5Space space = make_space(shape, name);
  for (const Hdf5Elsewhere& piece : pieces) {
    const std::vector<hsize_t> begin = to_extents(piece.begin), count = to_extents(piece.count);
    check(H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, begin.data(), nullptr, count.data(),
                              nullptr),
          name);
    const Hdf5Space source = make_space(piece.shape, name);
    check(H5Pset_virtual(creation.id(), space.id(), without_formats(piece.file).c_str(),
                         without_formats(piece.object).c_str(), source.id()),
          name);
  }
  // Where a source is gone, readers find this: zeros would be weights, or keys.
  if (H5Tget_class(type) == H5T_FLOAT) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    check(H5Pset_fill_value(creation.id(), H5T_NATIVE_DOUBLE, &none), name);
  } else if (H5Tget_sign(type) == H5T_SGN_2) {
    const int none = -1;
    check(H5Pset_fill_value(creation.id(), H5T_NATIVE_INT, &none), name);
  }
  const Hdf5Space whole = make_space(shape, name);
  return {H5Dcreate2(parent, name.c_str(), type, whole.id(), link_names_.id(), creation.id(),
                     H5P_DEFAULT),
          path_, "dataset " + name};
}

Hdf5Dataset Hdf5Writer::create_deflated(hid_t parent, const std::string& name, hid_t type,
                                        std::span<const int64_t> shape,
                                        std::span<const int64_t> chunk,
                                        int64_t element_bytes) const {
  const Hdf5Properties creation = make_properties(H5P_DATASET_CREATE);
  const std::vector<hsize_t> extents = to_extents(chunk);
  check(H5Pset_chunk(creation.id(), static_cast<int>(extents.size()), extents.data()), name);
  if (element_bytes > 1) check(H5Pset_shuffle(creation.id()), name);
  check(H5Pset_deflate(creation.id(), 4), name);
  const Hdf5Space space = make_space(shape, name);
  return {H5Dcreate2(parent, name.c_str(), type, space.id(), link_names_.id(), creation.id(),
                     H5P_DEFAULT),
          path_, "dataset " + name};
}

void Hdf5Writer::write_stored_chunk(const Hdf5Dataset& dataset, std::span<const int64_t> begin,
                                    std::span<const std::byte> stored,
                                    const std::string& name) const {
  const std::vector<hsize_t> start = to_extents(begin);
  check(H5Dwrite_chunk(dataset.id(), H5P_DEFAULT, 0, start.data(), stored.size(), stored.data()),
        name);
}

Hdf5Dataset Hdf5Writer::create_growing(hid_t parent, const std::string& name, hid_t type,
                                       int64_t chunk) const {
  const Hdf5Properties creation = make_properties(H5P_DATASET_CREATE);
  const auto extent = static_cast<hsize_t>(chunk);
  check(H5Pset_chunk(creation.id(), 1, &extent), name);
  const hsize_t none = 0;
  const hsize_t unlimited = H5S_UNLIMITED;
  const Hdf5Space space(H5Screate_simple(1, &none, &unlimited), path_, name);
  return {H5Dcreate2(parent, name.c_str(), type, space.id(), link_names_.id(), creation.id(),
                     H5P_DEFAULT),
          path_, "dataset " + name};
}

Hdf5Space Hdf5Writer::make_space(std::span<const int64_t> shape, const std::string& name) const {
  if (shape.empty()) return {H5Screate(H5S_SCALAR), path_, name};
  const std::vector<hsize_t> extents = to_extents(shape);
  return {H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), path_, name};
}

Hdf5Properties Hdf5Writer::make_properties(hid_t kind) const {
  Hdf5Properties properties(H5Pcreate(kind), path_, "creation properties");
  check(H5Pset_obj_track_times(properties.id(), false), "time stamps");
  check(H5Pset_attr_creation_order(properties.id(), kCreationOrder), "attribute order");
  check(H5Pset_attr_phase_change(properties.id(), kMaxCompact, kMinDense), "attribute storage");
  return properties;
}

void Hdf5Writer::check(herr_t result, const std::string& what) const {
  if (result < 0) throw hdf5_error(path_, what);
}

}  // namespace attnscope
