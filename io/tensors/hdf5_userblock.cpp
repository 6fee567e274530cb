#include "io/tensors/hdf5_userblock.h"

#include "io/hdf5/hdf5_handle.h"

namespace attnscope {
namespace {

constexpr hsize_t kSmallestBlock = 512;

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

}  // namespace

hsize_t chunk_address_base(hid_t file, const std::string& path) {
  const hsize_t block = block_of(file, path);
  if (block == 0) return 0;
  const bool left_out = chunk_behind(kSmallestBlock, path) == chunk_behind(0, path);
  return left_out ? block : 0;
}

}  // namespace attnscope
