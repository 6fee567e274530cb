#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "io/export/format/export_manifest.h"

namespace attnscope {

/// Reads the bytes of a file from `place` on.
using ReadPlace = std::function<void(std::span<std::byte> bytes, int64_t place)>;

/// True where the LSEs of a head match the checksum that the file has of them. They must all be
/// there. Holds a small piece of them. Throws what `read` throws.
bool lse_holds(const StoredGroup& group, int64_t head, const ReadPlace& read);

}  // namespace attnscope
