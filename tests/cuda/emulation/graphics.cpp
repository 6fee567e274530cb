#include "tests/cuda/emulation/graphics.h"

#include <gl_interop.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "tests/cuda/emulation/device_memory.h"
#include "tests/cuda/emulation/guarded_memory.h"
#include "tests/cuda/emulation/streams.h"

using namespace attnscope::cuda::emulation;

/// A layer of a texture that is mapped, or was.
struct cudaArray {
  cudaGraphicsResource* resource = nullptr;
  unsigned layer = 0;
  std::atomic<bool> mapped = true;
  std::vector<unsigned char> bytes;
  std::vector<TextureRect> written;
};

struct cudaGraphicsResource {
  unsigned texture = 0, target = 0, flags = 0;
  TextureShape shape;
  std::thread::id thread;
  std::atomic<bool> mapped = false;
  std::vector<std::unique_ptr<cudaArray>> arrays;  // of this time of being mapped, and before
};

namespace {

struct State {
  std::mutex mutex;
  Graphics graphics;
  int window_device = 0;
  std::vector<std::unique_ptr<cudaGraphicsResource>> resources;
};

State& state() {
  static State the_state;
  return the_state;
}

Graphics graphics() {
  const std::lock_guard lock(state().mutex);
  return state().graphics;
}

bool has_context() {
  const Graphics all = graphics();
  return all.has_context && all.has_context();
}

/// True of a registered resource. Ends the program on other threads, which lack its context.
bool is_registered(cudaGraphicsResource* resource) {
  const std::lock_guard lock(state().mutex);
  const auto found = std::find_if(state().resources.begin(), state().resources.end(),
                                  [&](const auto& each) { return each.get() == resource; });
  if (found == state().resources.end()) {
    return false;
  }
  if (resource->thread != std::this_thread::get_id()) {
    fail_program("a shared texture is used by another thread than the one that registered it");
  }
  return true;
}

cudaArray* find_array(cudaArray_t array) {
  const std::lock_guard lock(state().mutex);
  for (const auto& resource : state().resources) {
    for (const auto& each : resource->arrays) {
      if (each.get() == array) {
        return array;
      }
    }
  }
  return nullptr;
}

void discard(const cudaGraphicsResource& resource) {
  const TextureShape& shape = resource.shape;
  const std::vector<unsigned char> poison(shape.width * shape.height * shape.texel_bytes, kPoison);
  for (unsigned layer = 0; layer < shape.layers; ++layer) {
    graphics().write(resource.texture, resource.target, {layer, 0, 0, shape.width, shape.height},
                     poison.data());
  }
}

/// Hands what was copied to the layer to the texture.
void write_back(const cudaGraphicsResource& resource, const cudaArray& array) {
  const std::size_t texel = resource.shape.texel_bytes;
  for (const TextureRect& rect : array.written) {
    std::vector<unsigned char> packed(rect.width * rect.height * texel);
    for (std::size_t row = 0; row < rect.height; ++row) {
      const std::size_t from = ((rect.y + row) * resource.shape.width + rect.x) * texel;
      std::memcpy(packed.data() + row * rect.width * texel, array.bytes.data() + from,
                  rect.width * texel);
    }
    graphics().write(resource.texture, resource.target, rect, packed.data());
  }
}

}  // namespace

namespace attnscope::cuda::emulation {

void set_graphics(Graphics all) {
  const std::lock_guard lock(state().mutex);
  state().graphics = std::move(all);
}

void set_window_device(int device) {
  const std::lock_guard lock(state().mutex);
  state().window_device = device;
}

void reset_graphics() {
  const std::lock_guard lock(state().mutex);
  state().window_device = 0;
  state().resources.clear();
}

}  // namespace attnscope::cuda::emulation

cudaError_t cudaGLGetDevices(unsigned int* count, int* list, unsigned int room, cudaGLDeviceList) {
  if (const CallOutcome call = begin_call(Call::kGraphics); call.now != cudaSuccess) {
    return call.now;
  }
  *count = 0;
  if (!has_context()) {
    return record(cudaErrorInvalidGraphicsContext);
  }
  const std::lock_guard lock(state().mutex);
  if (state().window_device < 0) {
    return record(cudaErrorNoDevice);
  }
  *count = 1;
  if (room > 0) {
    *list = state().window_device;
  }
  return cudaSuccess;
}

cudaError_t cudaGraphicsGLRegisterImage(cudaGraphicsResource** resource, unsigned int texture,
                                        unsigned int target, unsigned int flags) {
  if (const CallOutcome call = begin_call(Call::kGraphics); call.now != cudaSuccess) {
    return call.now;
  }
  if (!has_context()) {
    return record(cudaErrorInvalidGraphicsContext);
  }
  const auto shape = graphics().shape(texture, target);
  if (!shape || flags > cudaGraphicsRegisterFlagsTextureGather) {
    return record(cudaErrorInvalidValue);
  }
  auto made = std::make_unique<cudaGraphicsResource>();
  made->texture = texture;
  made->target = target;
  made->flags = flags;
  made->shape = *shape;
  made->thread = std::this_thread::get_id();
  *resource = made.get();
  const std::lock_guard lock(state().mutex);
  if (state().window_device != current_device()) {
    return record(cudaErrorOperatingSystem);
  }
  state().resources.push_back(std::move(made));
  count([](Counters& counters) { ++counters.graphics_resources; });
  return cudaSuccess;
}

cudaError_t cudaGraphicsUnregisterResource(cudaGraphicsResource_t resource) {
  if (!is_registered(resource)) {
    return record(cudaErrorInvalidResourceHandle);
  }
  if (resource->mapped && sticky_error() == cudaSuccess) {
    fail_program("a shared texture is unregistered while it is mapped");
  }
  {
    const std::lock_guard lock(state().mutex);
    std::erase_if(state().resources, [&](const auto& each) { return each.get() == resource; });
  }
  count([](Counters& counters) { --counters.graphics_resources; });
  return begin_call();
}

cudaError_t cudaGraphicsMapResources(int number, cudaGraphicsResource_t* resources,
                                     cudaStream_t stream) {
  if (const CallOutcome call = begin_call(Call::kGraphics); call.now != cudaSuccess) {
    return call.now;
  }
  if (find_stream(stream) == nullptr) {
    return record(cudaErrorInvalidResourceHandle);
  }
  for (int i = 0; i < number; ++i) {
    if (!is_registered(resources[i])) {
      return record(cudaErrorInvalidResourceHandle);
    }
    if (resources[i]->mapped) {
      return record(cudaErrorAlreadyMapped);
    }
  }
  for (int i = 0; i < number; ++i) {
    if (resources[i]->flags == cudaGraphicsRegisterFlagsWriteDiscard) {
      discard(*resources[i]);
    }
    resources[i]->mapped = true;
  }
  return cudaSuccess;
}

cudaError_t cudaGraphicsUnmapResources(int number, cudaGraphicsResource_t* resources,
                                       cudaStream_t stream) {
  if (const CallOutcome call = begin_call(Call::kGraphics); call.now != cudaSuccess) {
    return call.now;
  }
  const StreamPointer found = find_stream(stream);
  if (found == nullptr) {
    return record(cudaErrorInvalidResourceHandle);
  }
  for (int i = 0; i < number; ++i) {
    if (!is_registered(resources[i])) {
      return record(cudaErrorInvalidResourceHandle);
    }
    if (!resources[i]->mapped) {
      return record(cudaErrorNotMapped);
    }
  }
  // The unmap waits for the work that was queued on this stream, and for nothing else.
  const cudaError_t error = run_until(enqueue(found, {[] {}}));
  for (int i = 0; i < number; ++i) {
    for (const auto& array : resources[i]->arrays) {
      write_back(*resources[i], *array);
      array->mapped = false;
      array->written.clear();
      array->bytes.clear();
      array->bytes.shrink_to_fit();
    }
    resources[i]->mapped = false;
  }
  return error;
}

cudaError_t cudaGraphicsSubResourceGetMappedArray(cudaArray_t* array,
                                                  cudaGraphicsResource_t resource,
                                                  unsigned int index, unsigned int level) {
  if (const CallOutcome call = begin_call(Call::kGraphics); call.now != cudaSuccess) {
    return call.now;
  }
  if (!is_registered(resource)) {
    return record(cudaErrorInvalidResourceHandle);
  }
  if (!resource->mapped) {
    return record(cudaErrorNotMapped);
  }
  const TextureShape& shape = resource->shape;
  if (index >= shape.layers || level != 0) {
    return record(cudaErrorInvalidValue);
  }
  auto made = std::make_unique<cudaArray>();
  made->resource = resource;
  made->layer = index;
  made->bytes.assign(shape.width * shape.height * shape.texel_bytes, kPoison);
  *array = made.get();
  const std::lock_guard lock(state().mutex);
  resource->arrays.push_back(std::move(made));
  return cudaSuccess;
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t handle, size_t x_bytes, size_t y, const void* src,
                                     size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t stream_handle) {
  const CallOutcome call = begin_call(Call::kCopy);
  if (call.now != cudaSuccess) {
    return call.now;
  }
  const StreamPointer stream = find_stream(stream_handle);
  cudaArray* const array = find_array(handle);
  if (stream == nullptr || array == nullptr) {
    return record(cudaErrorInvalidResourceHandle);
  }
  if (!array->mapped) {
    fail_program("a copy to a layer of a texture that is not mapped");
  }
  const TextureShape& shape = array->resource->shape;
  if (width > pitch) {
    return record(cudaErrorInvalidPitchValue);
  }
  const bool inside = x_bytes + width <= shape.width * shape.texel_bytes &&
                      y + height <= shape.height && x_bytes % shape.texel_bytes == 0 &&
                      width % shape.texel_bytes == 0;
  const auto* const source = static_cast<const unsigned char*>(src);
  const auto space = height == 0 ? Space::kDevice : space_of(src, (height - 1) * pitch + width);
  if (!inside || kind != cudaMemcpyDeviceToDevice || space != Space::kDevice) {
    return record(cudaErrorInvalidValue);
  }
  count([&](Counters& counters) { counters.bytes_within_device += width * height; });
  const std::size_t line = shape.width * shape.texel_bytes;
  const TextureRect rect{array->layer, x_bytes / shape.texel_bytes, y, width / shape.texel_bytes,
                         height};
  enqueue(stream, {[=] {
                     if (!array->mapped) {
                       fail_program("a copy to a layer of a texture ran after it was unmapped");
                     }
                     for (std::size_t row = 0; row < height; ++row) {
                       std::memcpy(array->bytes.data() + (y + row) * line + x_bytes,
                                   source + row * pitch, width);
                     }
                     array->written.push_back(rect);
                   },
                   call.when_run});
  return cudaSuccess;
}
