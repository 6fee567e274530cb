// The emulated sharing of textures: what arrives in them, and what is noticed. On textures in host
// memory.
#include <gl_interop.h>

#include <cstring>
#include <thread>

#include "tests/cuda/emulation/graphics.h"
#include "tests/cuda/emulation_tests/emulation_helpers.h"

namespace attnscope::test {
namespace {

namespace emulation = cuda::emulation;

constexpr unsigned kTexture = 7;
constexpr unsigned kTarget = 0x8C1A;
constexpr size_t kWidth = 4, kHeight = 3, kLayers = 2;

/// One texture array of numbers, all 1 at first, and a device that shares it.
struct SharedTexture : FreshDevice {
  std::vector<uint32_t> texels = std::vector<uint32_t>(kWidth * kHeight * kLayers, 1);
  cudaStream_t stream = nullptr;
  cudaGraphicsResource_t resource = nullptr;
  std::unique_ptr<DeviceArray<uint32_t>> source;

  SharedTexture() {
    emulation::set_graphics(
        {[] { return true; },
         [](unsigned texture, unsigned target) -> std::optional<emulation::TextureShape> {
           if (texture != kTexture || target != kTarget) return std::nullopt;
           return emulation::TextureShape{kWidth, kHeight, kLayers, 4};
         },
         [this](unsigned, unsigned, const emulation::TextureRect& rect, const void* from) {
           for (size_t y = 0; y < rect.height; ++y) {
             const size_t at = ((rect.layer * kHeight) + rect.y + y) * kWidth + rect.x;
             std::memcpy(texels.data() + at, static_cast<const uint32_t*>(from) + y * rect.width,
                         rect.width * 4);
           }
         }});
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    source = std::make_unique<DeviceArray<uint32_t>>(std::vector<uint32_t>{10, 11, 12, 13});
  }
  ~SharedTexture() { emulation::set_graphics({}); }

  void share(unsigned flags = cudaGraphicsRegisterFlagsNone) {
    REQUIRE(cudaGraphicsGLRegisterImage(&resource, kTexture, kTarget, flags) == cudaSuccess);
  }
  cudaError_t map() { return cudaGraphicsMapResources(1, &resource, stream); }
  cudaError_t unmap() { return cudaGraphicsUnmapResources(1, &resource, stream); }
  cudaArray_t layer(unsigned number) {
    cudaArray_t array = nullptr;
    REQUIRE(cudaGraphicsSubResourceGetMappedArray(&array, resource, number, 0) == cudaSuccess);
    return array;
  }
  /// Two by two of the source to (1, 1).
  cudaError_t copy(cudaArray_t array, cudaStream_t on) {
    return cudaMemcpy2DToArrayAsync(array, 4, 1, source->data(), 8, 8, 2, cudaMemcpyDeviceToDevice,
                                    on);
  }
};

}  // namespace

TEST_CASE_METHOD(SharedTexture, "what is copied to a mapped layer is there when it is unmapped") {
  share();
  CHECK(emulation::counters().graphics_resources == 1);
  REQUIRE(map() == cudaSuccess);
  CHECK(map() == cudaErrorAlreadyMapped);
  REQUIRE(copy(layer(1), stream) == cudaSuccess);
  CHECK(texels == std::vector<uint32_t>(texels.size(), 1));
  REQUIRE(unmap() == cudaSuccess);
  CHECK(unmap() == cudaErrorNotMapped);
  std::vector<uint32_t> expected(texels.size(), 1);
  const size_t layer_begin = kWidth * kHeight;
  expected[layer_begin + kWidth + 1] = 10;
  expected[layer_begin + kWidth + 2] = 11;
  expected[layer_begin + 2 * kWidth + 1] = 12;
  expected[layer_begin + 2 * kWidth + 2] = 13;
  CHECK(texels == expected);
  CHECK(cudaGraphicsUnregisterResource(resource) == cudaSuccess);
  CHECK(cudaGraphicsUnregisterResource(resource) == cudaErrorInvalidResourceHandle);
  CHECK(emulation::counters().graphics_resources == 0);
}

TEST_CASE_METHOD(SharedTexture, "a texture whose content is discarded holds nothing else") {
  share(cudaGraphicsRegisterFlagsWriteDiscard);
  REQUIRE(map() == cudaSuccess);
  REQUIRE(copy(layer(0), stream) == cudaSuccess);
  REQUIRE(unmap() == cudaSuccess);
  CHECK(texels[0] == 0xffffffff);
  CHECK(texels[kWidth + 1] == 10);
  CHECK(texels.back() == 0xffffffff);
}

TEST_CASE_METHOD(SharedTexture, "what cannot be shared or copied is refused") {
  CHECK(cudaGraphicsGLRegisterImage(&resource, kTexture + 1, kTarget, 0) == cudaErrorInvalidValue);
  share();
  cudaArray_t array = nullptr;
  CHECK(cudaGraphicsSubResourceGetMappedArray(&array, resource, 0, 0) == cudaErrorNotMapped);
  REQUIRE(map() == cudaSuccess);
  CHECK(cudaGraphicsSubResourceGetMappedArray(&array, resource, kLayers, 0) ==
        cudaErrorInvalidValue);
  CHECK(cudaMemcpy2DToArrayAsync(layer(0), 12, 0, source->data(), 8, 8, 1, cudaMemcpyDeviceToDevice,
                                 stream) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy2DToArrayAsync(layer(0), 0, 0, source->data(), 8, 8, 3, cudaMemcpyDeviceToDevice,
                                 stream) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy2DToArrayAsync(layer(0), 0, 0, source->data(), 8, 8, 1, cudaMemcpyHostToDevice,
                                 stream) == cudaErrorInvalidValue);
  unsigned count = 9;
  int device = 9;
  CHECK(cudaGLGetDevices(&count, &device, 1, cudaGLDeviceListAll) == cudaSuccess);
  CHECK(count == 1);
  CHECK(device == 0);
  emulation::set_window_device(-1);
  CHECK(cudaGLGetDevices(&count, &device, 1, cudaGLDeviceListAll) == cudaErrorNoDevice);
  emulation::set_graphics({});
  CHECK(cudaGLGetDevices(&count, &device, 1, cudaGLDeviceListAll) ==
        cudaErrorInvalidGraphicsContext);
}

TEST_CASE_METHOD(SharedTexture, "misuse of a shared texture ends the program") {
  share();
  REQUIRE(map() == cudaSuccess);
  const cudaArray_t array = layer(0);
  SECTION("a copy after unmapping") {
    REQUIRE(unmap() == cudaSuccess);
    CHECK(last_words([&] { copy(array, stream); }).find("not mapped") != std::string::npos);
  }
  SECTION("a copy that nothing orders before unmapping") {
    cudaStream_t other = nullptr;
    REQUIRE(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) == cudaSuccess);
    const std::string words = last_words([&] {
      copy(array, other);
      unmap();
      cudaStreamSynchronize(other);
    });
    CHECK(words.find("ran after it was unmapped") != std::string::npos);
  }
  SECTION("another thread") {
    const std::string words = last_words([&] { std::thread([&] { unmap(); }).join(); });
    CHECK(words.find("another thread") != std::string::npos);
  }
  SECTION("unregistering while mapped") {
    const std::string words = last_words([&] { cudaGraphicsUnregisterResource(resource); });
    CHECK(words.find("while it is mapped") != std::string::npos);
  }
}

}  // namespace attnscope::test
