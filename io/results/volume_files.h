#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "core/products/query_volumes.h"

namespace attnscope {

/// Each writes a complete file or throws Error(file) and leaves nothing behind under `path`
/// (written as PATH.part, renamed at the end; a file that is there is replaced with `force` only);
/// Error(usage) for volumes that do not fit their grid. Memory beyond the volumes stays below
/// 2 MiB.

/// float32 [n, T, H, W], NumPy format 1.0.
void write_volumes_npy(const QueryVolumes& volumes, const std::filesystem::path& path, bool force);
/// One line a value: step,layer,branch,kind,batch,head,segment,index,t,y,x,token,weight. `index`
/// counts within the segment; t, y, x are empty without a grid, which only this format may lack.
void write_volumes_csv(const QueryVolumes& volumes, const std::filesystem::path& path, bool force);
/// That text, in pieces.
void put_volumes_csv(const QueryVolumes& volumes, const std::function<void(std::string_view)>& put);

}  // namespace attnscope
