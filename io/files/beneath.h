#pragma once

#include <filesystem>

#include "io/files/descriptor.h"

namespace attnscope {

/// Opens what stands in an open folder or below it, as openat(2) does with O_CLOEXEC, where no part
/// of `relative` is a symbolic link and none leads out of the folder. Not open, with errno, where
/// that fails: ELOOP for a link, EXDEV for a name that leads out. Thread-safe.
Descriptor open_beneath(const Descriptor& folder, const std::filesystem::path& relative, int flags,
                        unsigned mode = 0);

/// open_beneath() without openat2(2), which kernels before 5.6 and some sandboxes lack: opens one
/// part of the name after the other, none of them through a link. Any ".." leads out here.
Descriptor open_beneath_by_parts(const Descriptor& folder, const std::filesystem::path& relative,
                                 int flags, unsigned mode = 0);

}  // namespace attnscope
