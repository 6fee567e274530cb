#pragma once

#include <string>

#include "tests/support/program.h"
#include "tests/support/project_paths.h"

namespace attnscope::test {

/// The program with its `number`-th call of `kind` ("pwrite", "fsync", "new" …) failing; −1: none,
/// and `count` gets how many there were.
inline ProgramSettings with_fault(const std::string& kind, long number,
                                  const std::string& count = "") {
  ProgramSettings settings;
  settings.environment = {"LD_PRELOAD=" + fault_library(),
                          "ATTNSCOPE_FAULT=" + kind + ":" + std::to_string(number)};
  if (!count.empty()) settings.environment.push_back("ATTNSCOPE_FAULT_COUNT=" + count);
  return settings;
}

}  // namespace attnscope::test
