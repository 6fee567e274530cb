#pragma once

#include <cstdint>
#include <string>

#include "cli/common/capture_options.h"
#include "cli/common/parser.h"
#include "cli/common/query_options.h"

namespace attnscope {

/// Values of the options of `export`.
struct ExportOptions {
  CaptureOptions capture;
  SelectionOptions selection;
  QueryOptions queries;
  RunOptions run;
  std::string out;
  std::string product;
  std::string dtype;
  std::string rows;
  std::string cols;
  std::string compress = "none";
  std::string shard;
  std::string align;
  bool alone = false;
  int64_t topk = 0;
  double threshold = 0;
  int64_t block = 0;
  bool pyramid = false;
  bool sync = true;
  bool force = false;
  bool resume = false;
  bool verify_all = false;
  bool dry_run = false;
  bool json = false;
  bool quiet = false;
};

void add_export_options(CommandParser& command, ExportOptions& options);

}  // namespace attnscope
