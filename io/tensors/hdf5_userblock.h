#pragma once

#include <hdf5.h>

#include <string>

namespace attnscope {

/// What is to be added to the chunk addresses that the library tells of this open file, so that
/// they count from the file's start: the size of its user block, where the library leaves it out
/// (1.10 does, later ones do not; contiguous datasets' offsets always have it). Within an
/// Hdf5Session. Throws Error(file) naming `path`.
hsize_t chunk_address_base(hid_t file, const std::string& path);

}  // namespace attnscope
