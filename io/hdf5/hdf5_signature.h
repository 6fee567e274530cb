#pragma once

#include <string_view>

#include "io/files/input_file.h"

namespace attnscope {

/// True where the first bytes of a file are those of HDF5 (without a user block).
bool begins_as_hdf5(std::string_view start);
/// True where the file is HDF5 behind a user block: its signature stands at byte 512, 1024, 2048 …
/// Asks nothing of the HDF5 library.
bool has_hdf5_userblock(const InputFile& file);

}  // namespace attnscope
