#include "kernels/cuda/host/textures/gl_link.h"

#include <gl_interop.h>

#include <map>

#include "core/base/error.h"

namespace attnscope::cuda {
namespace {

/// OpenGL's number of what tiles are in: the seam names textures alone.
constexpr unsigned kTextureArray = 0x8C1A;  // GL_TEXTURE_2D_ARRAY
constexpr int64_t kPairBytes = 4;

/// Throws Error(unavailable), for want of memory too: there is another way to upload a tile.
void check_graphics(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw Error(ErrorCode::unavailable, std::string("cuda: ") + what + ": " +
                                          cudaGetErrorString(status) + " (" +
                                          cudaGetErrorName(status) + ")");
}

/// A texture that the device may write to.
class RegisteredTexture {
 public:
  explicit RegisteredTexture(unsigned texture) {
    // The other layers of the array keep their tiles.
    check_graphics(cudaGraphicsGLRegisterImage(&resource_, texture, kTextureArray,
                                               cudaGraphicsRegisterFlagsNone),
                   "sharing a texture with OpenGL");
  }
  ~RegisteredTexture() { cudaGraphicsUnregisterResource(resource_); }
  RegisteredTexture(const RegisteredTexture&) = delete;
  RegisteredTexture& operator=(const RegisteredTexture&) = delete;

  cudaGraphicsResource_t get() const { return resource_; }

 private:
  cudaGraphicsResource_t resource_ = nullptr;
};

/// The time in which the device may write to a texture, and OpenGL may not touch it.
class MappedTexture {
 public:
  MappedTexture(cudaGraphicsResource_t resource, cudaStream_t stream)
      : resource_(resource), stream_(stream) {
    check_graphics(cudaGraphicsMapResources(1, &resource_, stream_), "mapping a texture");
  }
  ~MappedTexture() {
    if (resource_ != nullptr) cudaGraphicsUnmapResources(1, &resource_, stream_);
  }
  MappedTexture(const MappedTexture&) = delete;
  MappedTexture& operator=(const MappedTexture&) = delete;

  cudaArray_t layer(int number) const {
    cudaArray_t array = nullptr;
    check_graphics(
        cudaGraphicsSubResourceGetMappedArray(&array, resource_, static_cast<unsigned>(number), 0),
        "a layer of a texture");
    return array;
  }
  /// Gives the texture back to OpenGL, which uses it after all that was queued on the stream.
  void unmap() {
    check_graphics(cudaGraphicsUnmapResources(1, &resource_, stream_), "unmapping a texture");
    resource_ = nullptr;
  }

 private:
  cudaGraphicsResource_t resource_;
  const cudaStream_t stream_;
};

class GlLink : public TextureLink {
 public:
  GlLink(Device& device, TexelKeeper& texels)
      : device_(device), texels_(texels), stream_((device.make_current(), Stream())) {
    texels_.set_wanted(true);
  }
  ~GlLink() override {
    texels_.set_wanted(false);
    cudaSetDevice(device_.index());
  }

  bool copy(DeviceTexels& texels, unsigned texture, int layer) override {
    auto* const kept = dynamic_cast<KeptTexels*>(&texels);
    if (kept == nullptr || !kept->belongs_to(texels_)) return false;
    device_.make_current();
    const auto row_bytes = static_cast<size_t>(kept->cols() * kPairBytes);
    const bool copied = kept->use([&](const TexelBuffer& buffer) {
      MappedTexture mapped(registered(texture), stream_);
      check_graphics(cudaMemcpy2DToArrayAsync(mapped.layer(layer), 0, 0, buffer.memory, row_bytes,
                                              row_bytes, static_cast<size_t>(kept->rows()),
                                              cudaMemcpyDeviceToDevice, stream_),
                     "copying a tile to its texture");
      check_graphics(cudaEventRecord(buffer.copied, stream_), "an event");
      mapped.unmap();
    });
    if (copied) kept->release();
    return copied;
  }

 private:
  cudaGraphicsResource_t registered(unsigned texture) {
    return textures_.try_emplace(texture, texture).first->second.get();
  }

  Device& device_;
  TexelKeeper& texels_;
  const Stream stream_;
  std::map<unsigned, RegisteredTexture> textures_;
};

}  // namespace

int window_device() {
  unsigned count = 0;
  int device = 0;
  const cudaError_t status = cudaGLGetDevices(&count, &device, 1, cudaGLDeviceListAll);
  if (status != cudaSuccess || count == 0) {
    cudaGetLastError();
    throw Error(ErrorCode::unavailable,
                std::string("cuda: no CUDA device draws the window") +
                    (status == cudaSuccess ? ""
                                           : ": " + std::string(cudaGetErrorString(status)) + " (" +
                                                 cudaGetErrorName(status) + ")"));
  }
  return device;
}

std::unique_ptr<TextureLink> make_gl_link(Device& device, TexelKeeper& texels) {
  try {
    return std::make_unique<GlLink>(device, texels);
  } catch (const OutOfDeviceMemory&) {
    throw Error(ErrorCode::unavailable, "cuda: no memory is left to share textures with OpenGL");
  }
}

}  // namespace attnscope::cuda
