#pragma once

#include <string>

namespace attnscope::cuda::emulation {

/// The demangled name of the function at this address in the running program, or the address. From
/// the program's symbol table, which knows functions of unnamed namespaces too.
std::string kernel_name(const void* kernel);

}  // namespace attnscope::cuda::emulation
