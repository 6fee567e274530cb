#pragma once

#include <nanobind/ndarray.h>

#include <memory>
#include <string>

#include "core/tensor/tensor_source.h"

namespace attnscope {

/// An array of any library in the memory of the host: NumPy's, PyTorch's, whatever speaks DLPack or
/// the buffer protocol.
using HostArray = nanobind::ndarray<nanobind::ro, nanobind::device::cpu>;

/// The array as a tensor, whatever its strides: its own memory is read, nothing is copied, and the
/// array lives as long. `name` is how messages call it. Throws Error(usage) for types that no
/// tensor has, naming them. The result may be read by any thread; it is given up by one that holds
/// the interpreter's lock. `as_bf16`: u16 elements are bf16 numbers, as NumPy, which has no such
/// type, holds them.
std::shared_ptr<const TensorSource> array_tensor(std::string name, HostArray array,
                                                 bool as_bf16 = false);

}  // namespace attnscope
