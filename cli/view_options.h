#pragma once

#include <string>

#include "cli/common/capture_options.h"
#include "cli/common/query_options.h"

namespace attnscope {

/// The values of the options of `attnscope view`.
struct ViewRequest {
  CaptureOptions capture;
  SelectionOptions selection;
  RunOptions run;
  std::string second;  ///< a capture that is compared with the first
  QueryOptions query;
  std::string zoom, order, order_keys, script, screenshot, session, theme, size;
  std::string remote_program = "attnscope";
  std::string texture_memory = "512MiB";
  bool reverse = false;
  bool follow = false;
  bool force = false;
  bool alone = false;
  bool quiet = false;
};

/// The command line of `attnscope view`, the same whether the window was built or not.
CommandParser add_view_options(CLI::App& app, ViewRequest& request);

}  // namespace attnscope
