#pragma once

#include <nanobind/ndarray.h>

#include <memory>
#include <string>

#include "core/tensor/tensor_source.h"

namespace attnscope {

/// An array of any library: NumPy's, PyTorch's, whatever speaks DLPack or the buffer protocol. In
/// the memory of the host, or of a CUDA device: then it came as a capsule of
/// __dlpack__(stream=1), so that its producer has ordered its work before the default stream's.
using DataArray = nanobind::ndarray<nanobind::ro>;

/// The array as a tensor, whatever its strides: its own memory is read, nothing is copied, and the
/// array lives as long. `name` is how messages call it. One of a CUDA device is waited for here,
/// without the interpreter's lock, which the caller holds. Throws Error(usage) for types that no
/// tensor has, naming them, and for other devices; Error(unavailable) where no CUDA module is there
/// to read a device's memory, or the device fails. The result may be read by any thread; it is
/// given up by one that holds the interpreter's lock. `as_bf16`: u16 elements are bf16 numbers, as
/// NumPy, which has no such type, holds them.
std::shared_ptr<const TensorSource> array_tensor(std::string name, DataArray array,
                                                 bool as_bf16 = false);

}  // namespace attnscope
