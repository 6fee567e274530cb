#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/common/capture_options.h"
#include "cli/common/parser.h"

namespace attnscope {

/// Tokens and channels of a head.
struct HeadSize {
  int64_t tokens = 0;
  int64_t head_dim = 0;
};

struct BenchOptions {
  RunOptions run;
  std::string folder;
  std::vector<std::string> heads;  ///< "SxD"; empty: the usual ones
  std::vector<std::string> cases;  ///< empty: the usual ones
  int repeats = 5;
  bool json = false;
  bool quiet = false;

  /// Throws Error(usage) where one cannot be read.
  std::vector<HeadSize> head_sizes() const;
  bool wants(const std::string& name) const;
};

/// The command's options but those of computation. Borrows `o` until they are parsed.
void add_bench_options(CommandParser& command, BenchOptions& o);

}  // namespace attnscope
