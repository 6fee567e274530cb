#pragma once

#include <string>

namespace attnscope {

/// Whether `path` is a file that begins as HDF5 files do.
bool is_hdf5_file(const std::string& path);

/// What `info` says of an export or of what an interrupted one left; the exit code.
int print_export_info(const std::string& path, bool json);

}  // namespace attnscope
