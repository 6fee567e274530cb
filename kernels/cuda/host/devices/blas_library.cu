#include "kernels/cuda/host/devices/blas_library.h"

#include <dlfcn.h>

#include <string>

#include "kernels/cuda/host/devices/unusable.h"

namespace attnscope::cuda {
namespace {

[[noreturn]] void refuse() {
  const char* const reason = dlerror();
  throw Unusable("cuda: cuBLAS cannot be used: " +
                 std::string(reason == nullptr ? ATTNSCOPE_CUBLAS_FILE : reason));
}

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) refuse();
}

#define ATTNSCOPE_TEXT_OF(name) #name
/// The name that the header's macros make of a function's.
#define ATTNSCOPE_SYMBOL(name) ATTNSCOPE_TEXT_OF(name)

BlasLibrary load() {
  // Found by the module's own run path, as if it were linked.
  void* const library = dlopen(ATTNSCOPE_CUBLAS_FILE, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) refuse();
  BlasLibrary blas;
  find(library, ATTNSCOPE_SYMBOL(cublasCreate), blas.create);
  find(library, ATTNSCOPE_SYMBOL(cublasDestroy), blas.destroy);
  find(library, ATTNSCOPE_SYMBOL(cublasSetStream), blas.set_stream);
  find(library, ATTNSCOPE_SYMBOL(cublasSetWorkspace), blas.set_workspace);
  find(library, ATTNSCOPE_SYMBOL(cublasSetMathMode), blas.set_math_mode);
  find(library, ATTNSCOPE_SYMBOL(cublasGetStatusString), blas.status_text);
  find(library, ATTNSCOPE_SYMBOL(cublasGemmStridedBatchedEx), blas.multiply);
  return blas;
}

}  // namespace

const BlasLibrary& blas_library() {
  static const BlasLibrary library = load();
  return library;
}

}  // namespace attnscope::cuda
