#include "tests/support/hdf5_readback.h"

#include <hdf5.h>

#include <functional>
#include <memory>
#include <stdexcept>

#include "core/stream/weight_code.h"

namespace attnscope::test {
namespace {

/// An HDF5 id that is closed by `close`.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t), const std::string& what) : id_(id), close_(close) {
    if (id < 0) throw std::runtime_error("HDF5: cannot open " + what);
  }
  ~Handle() { close_(id_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

}  // namespace

DatasetValues read_dataset(const std::string& file, const std::string& path) {
  const Handle f(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, file);
  const Handle dataset(H5Dopen2(f, path.c_str(), H5P_DEFAULT), H5Dclose, path);
  const Handle space(H5Dget_space(dataset), H5Sclose, "dataspace");
  const Handle type(H5Dget_type(dataset), H5Tclose, "type");
  DatasetValues result;
  std::vector<hsize_t> shape(static_cast<size_t>(H5Sget_simple_extent_ndims(space)));
  if (!shape.empty()) H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  size_t count = 1;
  for (hsize_t extent : shape) {
    result.shape.push_back(static_cast<int64_t>(extent));
    count *= extent;
  }
  result.values.resize(count);
  if (H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, result.values.data()) <
      0) {
    throw std::runtime_error("HDF5: cannot read " + path);
  }
  if (H5Aexists(dataset, "scale_factor") > 0) {
    const Handle attribute(H5Aopen(dataset, "scale_factor", H5P_DEFAULT), H5Aclose, "attribute");
    double factor = 0;
    H5Aread(attribute, H5T_NATIVE_DOUBLE, &factor);
    for (double& value : result.values) value *= factor;
  }
  if (H5Aexists(dataset, "code_octaves") > 0) {
    for (double& value : result.values) value = decode_u8_log2(static_cast<uint8_t>(value));
  }
  return result;
}

std::string read_text_attribute(const std::string& file, const std::string& name,
                                const std::string& object) {
  const Handle f(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, file);
  const Handle attribute(H5Aopen_by_name(f, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose, name);
  const Handle type(H5Aget_type(attribute), H5Tclose, "type");
  if (H5Tis_variable_str(type) > 0) {
    char* text = nullptr;
    if (H5Aread(attribute, type, &text) < 0) throw std::runtime_error("HDF5: cannot read " + name);
    std::string result = text;
    H5free_memory(text);
    return result;
  }
  std::string result(H5Tget_size(type), '\0');
  if (H5Aread(attribute, type, result.data()) < 0) {
    throw std::runtime_error("HDF5: cannot read " + name);
  }
  return result.substr(0, result.find('\0'));
}

std::vector<std::string> group_members(const std::string& file, const std::string& path) {
  const Handle f(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, file);
  const Handle group(H5Gopen2(f, path.c_str(), H5P_DEFAULT), H5Gclose, path);
  std::vector<std::string> names;
  const auto collect = [](hid_t, const char* name, const H5L_info_t*, void* data) -> herr_t {
    static_cast<std::vector<std::string>*>(data)->emplace_back(name);
    return 0;
  };
  hsize_t at = 0;
  H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &at, collect, &names);
  return names;
}

}  // namespace attnscope::test
