#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/run/head_run_options.h"

namespace attnscope {

/// The values of the options of `attnscope lab`.
struct LabOptions : HeadRunOptions {
  std::vector<std::string> edits;
  int64_t block = 0;
  bool exact = false;
  std::string target;
  std::vector<std::string> among;
  std::string per = "head";
  int64_t hold_out = 0;
  std::string plan;
  std::vector<std::string> configs;
  std::vector<std::string> config_facts;
};

/// Adds them all.
void add_lab_options(CommandParser& command, LabOptions& options);

}  // namespace attnscope
