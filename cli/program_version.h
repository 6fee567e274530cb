#pragma once

#include <string_view>
#include <vector>

namespace attnscope {

/// A build's own facts, which a generated file holds (cmake/build_facts.cmake).
struct BuildFacts {
  std::string_view commit;  ///< of the sources, shortened; empty where none is known
  bool has_cuda = false;
  std::vector<std::string_view> lacks;  ///< of cuda, mpi, web and window what was not built
};
BuildFacts build_facts();

/// Prints "attnscope 0.1.0 (b2dc9e41) cpu-bf16; without cuda, mpi", or it as JSON. The backends are
/// what computes on this machine's processor, and cuda where it was built.
void print_version(bool json);

}  // namespace attnscope
