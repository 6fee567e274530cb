#pragma once

#include <string>

namespace attnscope::test {

/// The project's folder. Folders are compiled into one file only, so that compiler caches know the
/// others again in another clone.
std::string project_folder();
/// The program that was built with the tests.
std::string program_path();
/// The libraries that make the program's system calls fail (tests/cli/common/fault.cpp), as
/// LD_PRELOAD has them; in sanitized builds the sanitizer comes first.
std::string fault_libraries();
/// The helper process of tests that read HDF5 files; tests/io/helper/helper_main.cpp.
std::string helper_program();
/// True where the program was built with CUDA.
bool cuda_built();
/// As cuda_built(), for a test case that needs such a program; elsewhere the case is skipped.
bool can_use_cuda_module();
/// A module or library that tests/cuda builds, by its file's name.
std::string cuda_test_file(const std::string& name);

}  // namespace attnscope::test
