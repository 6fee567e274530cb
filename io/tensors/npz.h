#pragma once

#include <memory>

#include "io/tensors/tensor_file.h"
#include "io/tensors/zip_file.h"

namespace attnscope {

/// NumPy's .npz: keys without ".npy". Checks what can be checked without reading the arrays' data;
/// the checksum of a member is checked before its first value is served. An array is opened when it
/// is asked for: one that cannot be read (strings, objects) is no trouble to the others. Numbers
/// with the usual names (timestep, layer_idx …) become metadata() and are no keys then.
std::shared_ptr<const TensorFile> open_npz(ZipFile zip);

}  // namespace attnscope
