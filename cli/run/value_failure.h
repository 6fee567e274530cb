#pragma once

#include <exception>
#include <filesystem>

#include "core/base/error.h"

namespace attnscope {

/// True where the captured values are at fault (NaN, Inf, logits out of range), so that every run
/// fails alike.
bool is_of_values(const std::exception& error);

/// Removes what runs left beside `out`, whatever it is. No output may hold the lock of `out`.
void remove_partial(const std::filesystem::path& out);

/// Removes what runs that end so left beside `out`, this one and those that it went on with: no
/// --resume could ever complete it. Throws `error` again, which then says so. No output may hold
/// the lock of `out`.
[[noreturn]] void give_up_partial(const std::filesystem::path& out, const Error& error);

}  // namespace attnscope
