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
/// A file as messages name it: absolute, without dots.
std::string told_path(const std::filesystem::path& file);
/// The way back: absolute, without dots.
std::string opened_path(const std::string& name, const std::filesystem::path& folder);
/// opened_path() of the files that the facts name.
void open_files(FactOverrides& facts, const std::filesystem::path& folder);

/// A file of an order as the word of a setting, which is the name of no order.
std::string order_file_word(const std::string& file);
/// stored_path() for a file of an order, as order_file_word() has it.
std::string stored_order(const std::string& file, const std::filesystem::path& folder);

/// The facts as options of a command, each with its value; files as a session in `folder` holds
/// them.
std::vector<std::pair<std::string, std::string>> fact_options(const FactOverrides& facts,
                                                              const std::filesystem::path& folder);

}  // namespace attnscope
