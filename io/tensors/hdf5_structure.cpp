#include "io/tensors/hdf5_structure.h"

#include <hdf5.h>

#include <array>
#include <climits>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "io/files/json_types.h"
#include "io/hdf5/hdf5_handle.h"
#include "io/hdf5/hdf5_reader.h"
#include "io/helper/ask_helper.h"
#include "io/tensors/recorded_values.h"
#include "io/tensors/value_names.h"

namespace attnscope {
namespace {

constexpr size_t kMaxObjects = 65536;
constexpr int kMaxGroupDepth = 32;
constexpr size_t kMaxAttributeBytes = 1 << 20;
/// Of a list that is told.
constexpr hssize_t kMaxAttributeValues = 64;
/// The library finds the n-th chunk by walking over the ones before it.
constexpr hsize_t kMaxChunks = 32768;
/// Chunks walked over in one request: a few seconds at most.
constexpr uint64_t kMaxSteps = 30'000'000;

constexpr hsize_t kOneUserBlock = 512;

hsize_t block_of(hid_t file, const std::string& path) {
  const Hdf5Properties creation(H5Fget_create_plist(file), path, "creation properties");
  hsize_t bytes = 0;
  if (H5Pget_userblock(creation.id(), &bytes) < 0) throw hdf5_error(path, "user block");
  return bytes;
}

/// Where the library says that the only chunk of a new file in memory stands.
haddr_t chunk_behind(hsize_t block, const std::string& path) {
  const std::string what = "a trial file in memory";
  const Hdf5Properties access(H5Pcreate(H5P_FILE_ACCESS), path, what);
  const Hdf5Properties creation(H5Pcreate(H5P_FILE_CREATE), path, what);
  if (H5Pset_fapl_core(access.id(), 1 << 16, false) < 0 ||
      H5Pset_userblock(creation.id(), block) < 0) {
    throw hdf5_error(path, what);
  }
  const Hdf5File file(H5Fcreate("trial", H5F_ACC_TRUNC, creation.id(), access.id()), path, what);
  const hsize_t extent = 8;
  const Hdf5Space space(H5Screate_simple(1, &extent, nullptr), path, what);
  const Hdf5Properties chunked(H5Pcreate(H5P_DATASET_CREATE), path, what);
  if (H5Pset_chunk(chunked.id(), 1, &extent) < 0 ||
      H5Pset_alloc_time(chunked.id(), H5D_ALLOC_TIME_EARLY) < 0) {
    throw hdf5_error(path, what);
  }
  const Hdf5Dataset dataset(
      H5Dcreate2(file.id(), "d", H5T_STD_U8LE, space.id(), H5P_DEFAULT, chunked.id(), H5P_DEFAULT),
      path, what);
  const hsize_t origin = 0;
  unsigned mask = 0;
  haddr_t address = HADDR_UNDEF;
  hsize_t bytes = 0;
  if (H5Dget_chunk_info_by_coord(dataset.id(), &origin, &mask, &address, &bytes) < 0) {
    throw hdf5_error(path, what);
  }
  return address;
}

/// The bytes to add to the chunk addresses that the library tells of this open file, so that they
/// count from the file's start: the size of its user block, where the library leaves it out (1.10
/// does, later ones do not; contiguous datasets' offsets always have it). Within an Hdf5Session.
/// Throws Error(file) naming `path`.
hsize_t chunk_address_base(hid_t file, const std::string& path) {
  const hsize_t block = block_of(file, path);
  if (block == 0) return 0;
  const bool left_out = chunk_behind(kOneUserBlock, path) == chunk_behind(0, path);
  return left_out ? block : 0;
}

/// One open file; lives in the helper process.
class StructureReader : private Hdf5Reader {
 public:
  using Hdf5Reader::Hdf5Reader;

  /// The root's strings, truth values, numbers and lists of a few numbers.
  Json read_attributes() {
    attributes_ = Json::object();
    add_attributes(root(), "", [](const std::string&) { return true; });
    return std::move(attributes_);
  }

  Json read() {
    Json json;
    attributes_ = Json::object();
    add_attributes(root(), "", [](const std::string&) { return true; });
    datasets_ = Json::array();
    H5O_info_t info{};
    check(H5Oget_info1(root(), &info), "root group");
    groups_.insert(info.addr);
    read_group(root(), "", 0);
    json["attributes"] = std::move(attributes_);
    json["datasets"] = std::move(datasets_);
    return json;
  }

  /// Chunks from number `begin` on, as many as one request may walk over; and whether all are told.
  Json read_chunks(const std::string& name, hsize_t begin) {
    const Hdf5Dataset d(H5Dopen2(root(), name.c_str(), H5P_DEFAULT), path(), name);
    const Hdf5Space space(H5Dget_space(d.id()), path(), name);
    const int rank = H5Sget_simple_extent_ndims(space.id());
    hsize_t count = 0;
    check(H5Dget_num_chunks(d.id(), space.id(), &count), name);
    if (count > kMaxChunks) {
      bad(name, "has too many chunks (got " + std::to_string(count) + ", limit " +
                    std::to_string(kMaxChunks) + "): save it without chunks");
    }
    const hsize_t base = chunk_address_base(root(), path());
    Json chunks = Json::array();
    uint64_t steps = 0;
    hsize_t i = begin;
    for (; i < count && steps < kMaxSteps; steps += ++i) {
      std::array<hsize_t, H5S_MAX_RANK> offset{};
      unsigned mask = 0;
      haddr_t address = HADDR_UNDEF;
      hsize_t bytes = 0;
      check(H5Dget_chunk_info(d.id(), space.id(), i, offset.data(), &mask, &address, &bytes), name);
      Json chunk = Json::array();
      for (int axis = 0; axis < rank; ++axis) chunk.push_back(offset[static_cast<size_t>(axis)]);
      chunk.push_back(address == HADDR_UNDEF ? address : address + base);
      chunk.push_back(bytes);
      chunk.push_back(mask);
      chunks.push_back(std::move(chunk));
    }
    return {{"chunks", chunks}, {"done", i >= count}};
  }

 private:
  static herr_t add_name(hid_t, const char* name, const H5L_info_t*, void* list) {
    auto& names = *static_cast<std::vector<std::string>*>(list);
    names.emplace_back(name);
    return names.size() > kMaxObjects ? 1 : 0;
  }

  void read_group(hid_t group, const std::string& prefix, int depth) {
    if (depth > kMaxGroupDepth) bad(prefix, "its groups are nested too deep");
    std::vector<std::string> names;
    check(H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, add_name, &names),
          "group /" + prefix);
    for (const std::string& name : names) {
      const std::string path = prefix.empty() ? name : prefix + "/" + name;
      if (datasets_.size() + groups_.size() > kMaxObjects) bad("", "has too many objects");
      H5L_info_t link{};
      check(H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT), path);
      if (link.type != H5L_TYPE_HARD) {
        const std::string kind = link.type == H5L_TYPE_SOFT       ? "a soft link"
                                 : link.type == H5L_TYPE_EXTERNAL ? "a link to another file"
                                                                  : "a link of an unknown kind";
        datasets_.push_back({{"path", path}, {"error", "is " + kind + ", which is not followed"}});
        continue;
      }
      read_object(group, name, path, depth);
    }
  }

  void read_object(hid_t group, const std::string& name, const std::string& path, int depth) {
    H5O_info_t info{};
    check(H5Oget_info_by_name1(group, name.c_str(), &info, H5P_DEFAULT), path);
    if (info.type == H5O_TYPE_GROUP) {
      // A group may hold itself.
      if (!groups_.insert(info.addr).second) return;
      const Hdf5Group inner(H5Gopen2(group, name.c_str(), H5P_DEFAULT), Hdf5Reader::path(), path);
      add_attributes(inner.id(), path + "/", [](const std::string&) { return true; });
      read_group(inner.id(), path, depth + 1);
    } else if (info.type == H5O_TYPE_DATASET) {
      Json json{{"path", path}};
      try {
        read_dataset(group, name, json);
      } catch (const Error& error) {
        const std::string start = Hdf5Reader::path() + ": ";
        std::string text = error.what();
        if (text.starts_with(start)) text = text.substr(start.size());
        json = {{"path", path}, {"error", text}};
      }
      datasets_.push_back(std::move(json));
    }
  }

  void read_dataset(hid_t group, const std::string& name, Json& json) {
    const Hdf5Dataset d(H5Dopen2(group, name.c_str(), H5P_DEFAULT), path(), "dataset");
    // Axes and units are no concern of a map's.
    add_attributes(d.id(), json["path"].get<std::string>() + "/", [](const std::string& attribute) {
      return names_value(attribute) || shaping_name(attribute) != nullptr ||
             !fact_of_key(attribute).empty();
    });
    const Hdf5Space space(H5Dget_space(d.id()), path(), "space");
    if (H5Sget_simple_extent_type(space.id()) == H5S_NULL) bad("", "has a null space: no values");
    const int rank = H5Sget_simple_extent_ndims(space.id());
    if (rank < 0) throw hdf5_error(path(), "space");
    std::array<hsize_t, H5S_MAX_RANK> extents{};
    check(H5Sget_simple_extent_dims(space.id(), extents.data(), nullptr), "space");
    json["shape"] = Json::array();
    for (int axis = 0; axis < rank; ++axis) {
      json["shape"].push_back(extents[static_cast<size_t>(axis)]);
    }
    const Hdf5Type type(H5Dget_type(d.id()), path(), "type");
    if (const auto text = dataset_text(d, type, space)) {
      json = {{"path", json["path"]}, {"text", *text}};
      return;
    }
    json["dtype"] = dtype_name(element_dtype(type.id()));
    json["big_endian"] = H5Tget_order(type.id()) == H5T_ORDER_BE;
    const Hdf5Properties creation(H5Dget_create_plist(d.id()), path(), "creation properties");
    if (H5Pget_external_count(creation.id()) != 0) {
      bad("", "has its data in other files, which are not opened");
    }
    read_layout(d, creation, rank, json);
  }

  void read_layout(const Hdf5Dataset& d, const Hdf5Properties& creation, int rank,
                   Json& json) const {
    const H5D_layout_t layout = H5Pget_layout(creation.id());
    if (layout == H5D_CONTIGUOUS) {
      const haddr_t address = H5Dget_offset(d.id());
      json["layout"] = "contiguous";
      json["address"] = address == HADDR_UNDEF ? Json() : Json(address);
    } else if (layout == H5D_CHUNKED) {
      std::array<hsize_t, H5S_MAX_RANK> chunk{};
      if (H5Pget_chunk(creation.id(), H5S_MAX_RANK, chunk.data()) != rank) {
        bad("", "has chunks of another rank");
      }
      json["layout"] = "chunked";
      json["chunk"] = Json::array();
      for (int axis = 0; axis < rank; ++axis) {
        json["chunk"].push_back(chunk[static_cast<size_t>(axis)]);
      }
      json["filters"] = Json::array();
      for (const Hdf5Filter& filter : filters(creation)) {
        json["filters"].push_back(
            {{"id", filter.id}, {"name", filter.name}, {"values", filter.values}});
      }
    } else if (layout == H5D_VIRTUAL) {
      bad("", "is a virtual dataset: its data stand elsewhere");
    } else {
      bad("", "is stored in its header (compact): save it contiguous");
    }
  }

  DType element_dtype(hid_t type) const {
    const size_t size = H5Tget_size(type);
    const H5T_class_t kind = H5Tget_class(type);
    if (kind == H5T_FLOAT) return float_dtype(type, size);
    if (kind == H5T_ENUM && is_bool(type, size)) return DType::boolean;
    if (kind == H5T_INTEGER && H5Tget_precision(type) == 8 * size && H5Tget_offset(type) == 0) {
      const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
      if (size == 1) return is_signed ? DType::i8 : DType::u8;
      if (size == 2) return is_signed ? DType::i16 : DType::u16;
      if (size == 4) return is_signed ? DType::i32 : DType::u32;
      if (size == 8) return is_signed ? DType::i64 : DType::u64;
    }
    // ml_dtypes' types, which HDF5 does not know (npy.cpp tells which).
    if (kind == H5T_OPAQUE && size == 2) return DType::bf16;
    if (kind == H5T_OPAQUE && size == 1) return DType::u8;
    const char* text = kind == H5T_COMPOUND    ? "a compound type"
                       : kind == H5T_STRING    ? "strings"
                       : kind == H5T_VLEN      ? "lists of variable length"
                       : kind == H5T_REFERENCE ? "references"
                       : kind == H5T_OPAQUE    ? "opaque bytes"
                       : kind == H5T_ARRAY     ? "arrays as elements"
                                               : "an unusual type";
    bad("", std::string("holds ") + text + ", no numbers");
  }

  DType float_dtype(hid_t type, size_t size) const {
    size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
    check(H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits), "type");
    const bool plain = H5Tget_offset(type) == 0 && mantissa == 0 && exponent == mantissa_bits &&
                       sign == 8 * size - 1 && H5Tget_norm(type) == H5T_NORM_IMPLIED &&
                       H5Tget_ebias(type) == (size_t{1} << (exponent_bits - 1)) - 1;
    if (plain && size == 1 && exponent_bits == 4) return DType::e4m3;
    if (plain && size == 1 && exponent_bits == 5) return DType::e5m2;
    if (plain && size == 2 && exponent_bits == 5) return DType::f16;
    if (plain && size == 2 && exponent_bits == 8) return DType::bf16;
    if (plain && size == 4 && exponent_bits == 8) return DType::f32;
    if (plain && size == 8 && exponent_bits == 11) return DType::f64;
    bad("", "holds floating numbers of an unusual form");
  }

  /// As h5py stores truth values.
  static bool is_bool(hid_t type, size_t size) {
    return size == 1 && H5Tget_nmembers(type) == 2 && H5Tget_member_index(type, "FALSE") == 0 &&
           H5Tget_member_index(type, "TRUE") == 1;
  }

  static herr_t add_attribute(hid_t, const char* name, const H5A_info_t*, void* list) {
    auto& names = *static_cast<std::vector<std::string>*>(list);
    names.emplace_back(name);
    return names.size() > kMaxObjects ? 1 : 0;
  }

  void add_attributes(hid_t object, const std::string& prefix, bool (*wanted)(const std::string&)) {
    std::vector<std::string> names;
    hsize_t at = 0;
    check(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, &at, add_attribute, &names),
          "attributes");
    std::erase_if(names, [&](const std::string& name) { return !wanted(name); });
    if (attributes_.size() + names.size() > kMaxObjects) bad("", "has too many attributes");
    for (const std::string& name : names) read_attribute(object, name, prefix);
  }

  void read_attribute(hid_t object, const std::string& name, const std::string& prefix) {
    const Hdf5Attribute attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), path(), name);
    const Hdf5Type type(H5Aget_type(attribute.id()), path(), name);
    const Hdf5Space space(H5Aget_space(attribute.id()), path(), name);
    const hssize_t count = H5Sget_simple_extent_npoints(space.id());
    if (count < 1 || count > kMaxAttributeValues) return;
    const auto read = [&](hid_t as, void* values) {
      check(H5Aread(attribute.id(), as, values), name);
    };
    Json& json = attributes_[prefix + name];
    switch (H5Tget_class(type.id())) {
      case H5T_INTEGER: {
        std::vector<int64_t> values(static_cast<size_t>(count));
        read(H5T_NATIVE_INT64, values.data());
        json = count == 1 ? Json(values.front()) : Json(values);
        break;
      }
      case H5T_FLOAT: {
        std::vector<double> values(static_cast<size_t>(count));
        read(H5T_NATIVE_DOUBLE, values.data());
        json = told_number(values);
        break;
      }
      case H5T_ENUM: {
        int8_t value = 0;
        if (count != 1 || !is_bool(type.id(), H5Tget_size(type.id()))) break;
        read(type.id(), &value);
        json = value != 0;
        break;
      }
      case H5T_STRING: {
        const auto texts =
            string_values(type, count, [&](hid_t as, void* values) { read(as, values); });
        if (!texts.empty()) json = count == 1 ? Json(texts.front()) : Json(texts);
        break;
      }
      default:
        break;
    }
    // Its name is told all the same.
    if (json.is_null()) json = "(no number or text)";
  }

  /// NaN and infinity have no word in JSON, but one in texts of values.
  static Json told_number(const std::vector<double>& values) {
    Json list = Json::array();
    for (const double value : values) {
      list.push_back(std::isfinite(value) ? Json(value) : Json(text_of_value(value)));
    }
    return list.size() == 1 ? list.front() : list;
  }

  /// A dataset of one string.
  std::optional<std::string> dataset_text(const Hdf5Dataset& d, const Hdf5Type& type,
                                          const Hdf5Space& space) const {
    if (H5Tget_class(type.id()) != H5T_STRING) return std::nullopt;
    if (H5Sget_simple_extent_npoints(space.id()) != 1) return std::nullopt;
    const Hdf5Properties creation(H5Dget_create_plist(d.id()), path(), "creation properties");
    const H5D_layout_t layout = H5Pget_layout(creation.id());
    if (layout != H5D_CONTIGUOUS && layout != H5D_COMPACT) return std::nullopt;
    if (H5Pget_external_count(creation.id()) != 0) return std::nullopt;
    const auto texts = string_values(type, 1, [&](hid_t as, void* value) {
      check(H5Dread(d.id(), as, H5S_ALL, H5S_ALL, H5P_DEFAULT, value), "text");
    });
    return texts.empty() ? std::nullopt : std::optional(texts.front());
  }

  /// As many strings, that `read` reads as a type; none where they are too long.
  template <typename Read>
  std::vector<std::string> string_values(const Hdf5Type& type, hssize_t count,
                                         const Read& read) const {
    std::vector<std::string> texts;
    const auto number = static_cast<size_t>(count);
    if (H5Tis_variable_str(type.id()) > 0) {
      std::vector<char*> values(number, nullptr);
      const Hdf5Type memory(H5Tget_native_type(type.id(), H5T_DIR_DEFAULT), path(), "text");
      read(memory.id(), static_cast<void*>(values.data()));
      for (char* const value : values) {
        texts.emplace_back(value == nullptr ? "" : value);
        H5free_memory(value);
      }
      return texts;
    }
    const size_t bytes = H5Tget_size(type.id());
    if (bytes > kMaxAttributeBytes / number) return texts;
    std::string all(number * bytes, '\0');
    read(type.id(), all.data());
    for (size_t i = 0; i < number; ++i) {
      const std::string text = all.substr(i * bytes, bytes);
      texts.push_back(text.substr(0, text.find('\0')));
    }
    return texts;
  }

  std::set<haddr_t> groups_;
  Json attributes_;
  Json datasets_;
};

}  // namespace

const HelperQuestion kHdf5StructureQuestion{"the structure of an HDF5 file",
                                            [](const std::string& path, const Json&) {
                                              const Hdf5Session session;
                                              return StructureReader(path).read();
                                            }};

const HelperQuestion kHdf5AttributesQuestion{"the attributes of an HDF5 file",
                                             [](const std::string& path, const Json&) {
                                               const Hdf5Session session;
                                               return StructureReader(path).read_attributes();
                                             }};

const HelperQuestion kHdf5ChunksQuestion{
    "the chunks of an HDF5 dataset", [](const std::string& path, const Json& arguments) {
      const Hdf5Session session;
      return StructureReader(path).read_chunks(arguments.at("dataset").get<std::string>(),
                                               arguments.at("begin").get<hsize_t>());
    }};

Json read_hdf5_structure(const std::string& path, const std::stop_token& stop) {
  return ask_helper(kHdf5StructureQuestion, path, Json::object(), stop);
}

Json read_hdf5_attributes(const std::string& path) {
  return ask_helper(kHdf5AttributesQuestion, path);
}

Json read_hdf5_chunks(const std::string& path, const std::string& dataset,
                      const std::stop_token& stop) {
  Json chunks = Json::array();
  while (true) {
    const Json part = ask_helper(kHdf5ChunksQuestion, path,
                                 {{"dataset", dataset}, {"begin", chunks.size()}}, stop);
    for (const Json& chunk : part["chunks"]) chunks.push_back(chunk);
    if (part["done"] == true || part["chunks"].empty()) return chunks;
  }
}

}  // namespace attnscope
