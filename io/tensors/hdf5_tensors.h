#pragma once

#include <filesystem>
#include <memory>

#include "io/files/input_file.h"
#include "io/files/read_progress.h"
#include "io/tensors/tensor_file.h"

namespace attnscope {

/// The datasets of an HDF5 file that is not ours, by their paths without the first slash
/// (layer0/attn/q). The HDF5 library reads the structure only, in the helper process (ask_helper,
/// which `control`'s stop ends) without plugins: a file that crashes it or keeps it busy is an
/// error here. The data are read with pread at the places that the helper told, checked against the
/// file: contiguous datasets and chunks without filters directly; chunks of up to 16 MiB packed by
/// deflate, with or without shuffle and Fletcher-32 (checked), through a cache of 16 MiB a file.
/// Links are not followed. A dataset that cannot be read (links, external or virtual storage,
/// other filters, compound types, chunks never written …) is an error when it is asked for, no
/// trouble to the others. Attributes of groups (GROUP/NAME; of the root NAME), texts, and small
/// values with usual names become metadata().
std::shared_ptr<const TensorFile> open_hdf5_tensors(std::shared_ptr<const InputFile> file,
                                                    const ReadControl& control = {});

/// True where an HDF5 file says that it is an export of this program. Throws Error(file) where the
/// library cannot read it.
bool says_export(const std::filesystem::path& path);

}  // namespace attnscope
