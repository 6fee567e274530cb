#include "viewer/state/texel_reader.h"

#include "io/stored_blocks.h"
#include "io/stored_maps.h"

namespace attnscope {

std::unique_ptr<TexelReader> read_export_texels(const std::filesystem::path& path) {
  if (read_stored_export(path).product == "pooled") {
    return read_texels(std::make_shared<const StoredBlocks>(path));
  }
  return read_texels(std::make_shared<const StoredMaps>(path));
}

}  // namespace attnscope
