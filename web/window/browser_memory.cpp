#include "web/window/browser.h"

#include <emscripten/heap.h>

#include "viewer/app/process_memory.h"

// In place of viewer/app/process_memory.cpp: a page knows its heap.

namespace attnscope {

int64_t resident_bytes() { return static_cast<int64_t>(emscripten_get_heap_size()); }

}  // namespace attnscope
