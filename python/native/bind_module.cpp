#include "python/native/bind.h"

#include <cstdio>

NB_MODULE(_native, module) {
  module.doc() =
      "The compiled part of attnscope. What is public of it is in the package attnscope.";
  // Whoever keeps objects until the interpreter has ended, as torch.compile does, makes no mistake.
  nanobind::set_leak_warnings(false);
  attnscope::bind_engine(module);
  attnscope::bind_calls(module);
  attnscope::bind_maps(module);
  attnscope::bind_figure(module);
  attnscope::bind_exports(module);
  attnscope::bind_numbers(module);
  attnscope::bind_metrics(module);
}

// Debian's static HDF5 is compiled for programs, which may lie anywhere but have the C library's
// standard streams at a place that is known when they are linked. A module has not. So these three
// names mean variables of its own here (the linker's --wrap), which have the streams before
// anything else of the module runs.
extern "C" {
extern FILE *__real_stdin, *__real_stdout, *__real_stderr;
FILE *__wrap_stdin, *__wrap_stdout, *__wrap_stderr;

__attribute__((constructor(101))) static void take_streams() {
  __wrap_stdin = __real_stdin;
  __wrap_stdout = __real_stdout;
  __wrap_stderr = __real_stderr;
}
}
