#pragma once

#include <string>

namespace attnscope {

/// Whether `path` is a file that begins as HDF5 files do.
bool is_hdf5_file(const std::string& path);
/// Whether it is one that says that it is an export; others hold tensors. Throws Error(file) for an
/// HDF5 file that cannot be read.
bool is_export_file(const std::string& path);

/// What `info` says of an export or of what an interrupted one left; the exit code.
int print_export_info(const std::string& path, bool json);

}  // namespace attnscope
