#pragma once

#include <cstdint>
#include <string>

#include "tests/support/sanitized.h"

namespace attnscope::test {

/// Writes a safetensors capture with one head of bf16 Q and K [1, 1, tokens, d], values within ±2
/// from a fixed generator.
void write_synthetic_head(const std::string& path, int64_t tokens, int64_t d);

/// Writes a capture with many heads, all zeros, as a file with holes that takes no space.
void write_sparse_heads(const std::string& path, int64_t heads, int64_t tokens, int64_t d);

}  // namespace attnscope::test
