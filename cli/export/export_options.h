#pragma once

#include <cstdint>
#include <string>

#include "cli/common/parser.h"
#include "cli/common/query_options.h"
#include "cli/run/head_run_options.h"

namespace attnscope {

/// Values of the options of `export`.
struct ExportOptions : HeadRunOptions {
  QueryOptions queries;
  std::string product;
  std::string dtype;
  std::string rows;
  std::string cols;
  std::string compress = "none";
  std::string align;
  std::string max_size;
  int64_t topk = 0;
  double threshold = 0;
  int64_t block = 0;
  bool pyramid = false;
  bool sync = true;
  bool verify_all = false;
};

void add_export_options(CommandParser& command, ExportOptions& options);

}  // namespace attnscope
