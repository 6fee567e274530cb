#pragma once

#include <string>

namespace attnscope::test {

/// The project's folder. Folders are compiled into one file only, so that compiler caches know the
/// others again in another clone.
std::string project_folder();
/// The program that was built with the tests.
std::string program_path();
/// What makes the program's system calls fail when it is preloaded (tests/cli/common/fault.cpp), as
/// LD_PRELOAD has it; in sanitized builds after the sanitizer.
std::string fault_libraries();
/// The helper process of tests that read HDF5 files; tests/io/helper/helper_main.cpp.
std::string helper_program();
/// Whether the program was built with CUDA.
bool cuda_built();
/// The same for a test case of what only such a program does, which is skipped elsewhere.
bool can_use_cuda_module();
/// A module or library that tests/cuda builds, by its file's name.
std::string cuda_test_file(const std::string& name);

}  // namespace attnscope::test
