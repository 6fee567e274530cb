#pragma once

#include <memory>

#include "viewer/tiles/texels/texel_reader.h"

namespace attnscope {

/// Two exports as one: the calls of the second stand behind those of the first. Holds both.
std::unique_ptr<TexelReader> join_texels(std::shared_ptr<const TexelReader> first,
                                         std::shared_ptr<const TexelReader> second);

}  // namespace attnscope
