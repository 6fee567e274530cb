#pragma once

#include <map>
#include <string>

#include "python/native/array_tensor.h"
#include "python/native/call_maps.h"

namespace attnscope {

/// The call that a recorder would have written to the file `name`, without the file: tensors by the
/// names of the capture format, which are read where they are, and the file's metadata. What is
/// said of it is what the file would say. Throws Error(file) as opening a capture does.
CallHandle recorded_call(const std::string& name, std::map<std::string, DataArray> tensors,
                         std::map<std::string, std::string> metadata);

}  // namespace attnscope
