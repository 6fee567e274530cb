#include "python/native/bind.h"

#include <nanobind/stl/string.h>

#include <exception>
#include <new>
#include <string>

#include "cli/common/system_memory.h"
#include "core/base/error.h"
#include "core/base/failure_text.h"
#include "core/base/version.h"
#include "io/helper/ask_helper.h"
#include "io/helper/helper_server.h"
#include "kernels/cuda_backend.h"
#include "python/native/engine.h"

namespace attnscope {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

/// Makes an attnscope.Error of (text, code), once the package has named it. Lives as long as the
/// process.
PyObject* error_maker = nullptr;

const char* code_word(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
      return "usage";
    case ErrorCode::file:
      return "file";
    case ErrorCode::value:
      return "value";
    case ErrorCode::resource:
      return "resource";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::interrupted:
      return "interrupted";
  }
  return "usage";
}

void raise(const std::string& text, ErrorCode code) {
  if (error_maker == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, text.c_str());
    return;
  }
  const nb::object error = nb::borrow(error_maker)(text, code_word(code));
  PyErr_SetObject(error.type().ptr(), error.ptr());
}

/// Exceptions that no binding of nanobind's own knows better.
void translate(const std::exception_ptr& failure, void*) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    raise(one_line(error.what()), error.code());
  } catch (const std::bad_alloc&) {
    raise("out of memory: give a smaller --memory", ErrorCode::resource);
  }
}

}  // namespace

void bind_engine(nb::module_& module) {
  nb::register_exception_translator(translate);
  module.def("version", [] { return std::string(version()); });
  module.def(
      "set_error_maker",
      [](const nb::object& maker) { error_maker = nb::object(maker).release().ptr(); }, "maker"_a,
      "maker(text, code) is what is raised for errors.");
  module.def(
      "set_program",
      [](const std::string& path) {
        set_helper_program({path, {std::string(kHelperWord)}});
      },
      "path"_a, "Names the program attnscope, which reads files that may crash who reads them.");
  module.def(
      "reads_device_memory", [] { return cuda_reader() != nullptr; },
      "Whether the memory of CUDA devices can be read here at all.");
  module.def("available_memory", &available_memory, "Bytes that this process can still take.");
  nb::class_<Engine>(module, "Engine")
      .def(
          "__init__",
          [](Engine* place, const std::string& memory, int threads, const std::string& backend,
             const std::string& vram, bool tf32) {
            new (place) Engine({memory, threads, backend, vram, tf32, false});
          },
          "memory"_a, "threads"_a, "backend"_a, "vram"_a, "tf32"_a)
      .def_prop_ro("memory", &Engine::memory, "Bytes that a piece of work may take, now.")
      .def_prop_ro(
          "takes_device_arrays",
          [](const Engine& engine) {
            return engine.backend().device() != nullptr && cuda_reader() != nullptr;
          },
          "Whether arrays in the memory of a CUDA device are computed on from there.")
      .def_prop_ro("backend", [](const Engine& engine) { return engine.backend().name(); })
      .def_prop_ro("description",
                   [](const Engine& engine) { return engine.backend().description(); });
}

}  // namespace attnscope
