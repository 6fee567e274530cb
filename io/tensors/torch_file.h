#pragma once

#include <memory>

#include "io/tensors/tensor_file.h"
#include "io/tensors/zip_file.h"

namespace attnscope {

/// torch.save's file of tensors, numbers and strings in dictionaries, lists and tuples: keys are
/// joined by ".", list items count from 0, a single tensor is "". Nothing in the file is executed:
/// of pickle only what plain tensors need is understood, all else refused by name. Checks what can
/// be checked without reading the tensors' data; the checksum of a storage is checked before its
/// first value is served, where the archive has checksums. A tensor of a type that is not known is
/// an error when it is asked for, no trouble to the others. Numbers with the usual names (timestep,
/// layer_idx …) become metadata() and are no keys then.
std::shared_ptr<const TensorFile> open_torch(ZipFile zip);
/// True where torch.save wrote the archive.
bool is_torch_zip(const ZipFile& zip);

}  // namespace attnscope
