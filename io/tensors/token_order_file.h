#pragma once

#include <filesystem>
#include <string>

#include "core/problem/token_order.h"

namespace attnscope {

/// An order of tokens from a file: a .npy array of one axis of 32- or 64-bit integers, or whole
/// numbers as text, with white space or commas between them. Number i is the token at place i. What
/// is read is no order yet: order_problem() tells. Throws Error(file) where it cannot be read or
/// holds anything else.
TokenOrder read_token_order(const std::filesystem::path& file);

/// A name that TokenOrder::parse() knows, or a file. Throws what both throw.
TokenOrder open_token_order(const std::string& name_or_file);

}  // namespace attnscope
