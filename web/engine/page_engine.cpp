#include "web/engine/page_engine.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/problem/attention_problem.h"
#include "core/tensor/memory_tensor.h"
#include "kernels/cpu/cpu_backend.h"

namespace attnscope {
namespace {

struct OpenHead {
  std::unique_ptr<TileBackend> backend = make_cpu_backend({.threads = 1});
  std::optional<AttentionProblem> problem;
  std::unique_ptr<BoundHead> head;
};
std::unique_ptr<OpenHead> open_head;

HeadTensor copy_of(const char* name, const void* data, DType dtype, int64_t tokens, int64_t width) {
  std::vector<std::byte> bytes(static_cast<size_t>(tokens * width * dtype_bytes(dtype)));
  std::memcpy(bytes.data(), data, bytes.size());
  return HeadTensor(std::make_shared<MemoryTensor>(name, dtype, std::vector<int64_t>{tokens, width},
                                                   std::move(bytes)),
                    Layout::sd);
}

}  // namespace
}  // namespace attnscope

extern "C" {

__attribute__((export_name("attnscope_open"))) int attnscope_open(const void* q, const void* k,
                                                                  int dtype, int queries, int keys,
                                                                  int dim) {
  using namespace attnscope;
  try {
    auto opened = std::make_unique<OpenHead>();
    AttentionProblem::Parts parts;
    parts.q = copy_of("q", q, static_cast<DType>(dtype), queries, dim);
    parts.k = copy_of("k", k, static_cast<DType>(dtype), keys, dim);
    opened->problem = AttentionProblem::make(std::move(parts));
    opened->head = opened->backend->bind(*opened->problem, 0, 0);
    open_head = std::move(opened);
    return 1;
  } catch (const std::exception&) {
    return 0;
  }
}
}
