#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "io/metrics/run_table.h"

namespace attnscope {

/// A line a head of a run (RFC 4180): run, prompt, seed, its name, class and numbers, undefined
/// ones empty; of masks NAME(MASK). Arrays and maps of blocks are left out. Creates `path`, which
/// must not exist; throws Error(file).
void write_metric_csv(const RunTable& table, const std::filesystem::path& path);
/// That text, in pieces.
void put_metric_csv(const RunTable& table, const std::function<void(std::string_view)>& put);
/// Variables that a .csv leaves out, by name.
std::vector<std::string> not_in_csv(const RunTable& table);

}  // namespace attnscope
