#pragma once

#include <memory>

#include "core/stream/device_texels.h"
#include "kernels/cuda/host/devices/device.h"
#include "kernels/cuda/host/textures/texel_keeper.h"

namespace attnscope::cuda {

/// The number of the device that the calling thread's OpenGL context belongs to. Throws
/// Error(unavailable) where that is none.
int window_device();

/// A link to the textures of the calling thread's OpenGL context, which must belong to this device.
/// Borrows both; see TextureLink.
std::unique_ptr<TextureLink> make_gl_link(Device& device, TexelKeeper& texels);

}  // namespace attnscope::cuda
