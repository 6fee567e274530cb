#pragma once

#include <filesystem>
#include <span>

namespace attnscope {

/// These functions keep the files that a run writes away from those that it reads. `inputs` are
/// files that are read, and folders of captures, by whatever names; each function throws
/// Error(file) that names both sides.

/// Throws where `file` is one of the inputs.
void refuse_input(const std::filesystem::path& file, std::span<const std::filesystem::path> inputs);

/// Throws where `out`, a file or folder to be made, would stand in a folder that is an input, or
/// below it: nothing is written into the capture that is read.
void refuse_within_input(const std::filesystem::path& out,
                         std::span<const std::filesystem::path> inputs);

/// Throws where `folder`, whose files may be removed or replaced, is an input or holds one, however
/// deep.
void refuse_folder_of_input(const std::filesystem::path& folder,
                            std::span<const std::filesystem::path> inputs);

}  // namespace attnscope
