#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

/// libFuzzer's entry: one input. Each fuzz_NAME.cpp defines it; what it returns does not matter, a
/// crash, a sanitizer's report, a hang or an uncaught exception is the finding.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace attnscope::test {

/// A file of this process with these bytes, at the same path every time.
std::string fuzz_file(const uint8_t* data, size_t size, const std::string& name);

/// Opens a tensor file and reads the first and the last element of every tensor. Errors of the
/// program's own kind are what is expected of damaged files.
void open_and_touch(const std::string& path);

}  // namespace attnscope::test
