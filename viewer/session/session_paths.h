#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/capture/facts/fact_overrides.h"

namespace attnscope {

inline constexpr std::string_view kSessionFormat = "attnscope-session/2";

/// A path (a :KEY behind it stays) as a session in `folder` holds it: relative where it is below
/// that, else absolute. Names on another machine, and all where `folder` is empty, stay as they
/// are.
std::string stored_path(const std::string& name, const std::filesystem::path& folder);
/// The way back: absolute, without dots.
std::string opened_path(const std::string& name, const std::filesystem::path& folder);
/// stored_path() and opened_path() for --mask, which may be the name of a pattern.
std::string stored_mask(const std::string& mask, const std::filesystem::path& folder);
std::string opened_mask(const std::string& mask, const std::filesystem::path& folder);

/// stored_path() and opened_path() for --cu-seqlens, which may be a list of numbers.
std::string stored_cuts(const std::string& cuts, const std::filesystem::path& folder);
std::string opened_cuts(const std::string& cuts, const std::filesystem::path& folder);

/// A file of an order as the word of a setting, which is the name of no order.
std::string order_file_word(const std::string& file);
/// stored_path() for a file of an order, as order_file_word() has it.
std::string stored_order(const std::string& file, const std::filesystem::path& folder);

/// The facts as options of a command, each with its value; files as a session in `folder` holds
/// them.
std::vector<std::pair<std::string, std::string>> fact_options(const FactOverrides& facts,
                                                              const std::filesystem::path& folder);

}  // namespace attnscope
