#include "viewer/tiles/texels/export_texels.h"

#include "viewer/tiles/texels/block_texels.h"
#include "viewer/tiles/texels/entry_texels.h"

namespace attnscope {

std::unique_ptr<TexelReader> read_export_texels(const std::filesystem::path& path) {
  if (read_manifest(path).product == "pooled") {
    return read_texels(std::make_shared<const StoredBlocks>(path));
  }
  return read_texels(std::make_shared<const StoredMaps>(path));
}

}  // namespace attnscope
