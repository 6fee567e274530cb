#include "cli/bench/bench_options.h"

#include <algorithm>
#include <charconv>

#include "cli/common/output_options.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

const std::vector<std::string> kHeads{"17776x64", "32760x128"};
const std::vector<std::string> kUsualCases{"lse", "weights", "export", "masks"};
const std::vector<std::string> kCases{"lse",  "weights", "metrics", "pyramid", "row",
                                      "tile", "export",  "masks",   "threads"};

HeadSize parse_head(const std::string& text) {
  HeadSize size;
  const char* const end = text.data() + text.size();
  const auto tokens = std::from_chars(text.data(), end, size.tokens);
  if (tokens.ec == std::errc() && tokens.ptr != end && *tokens.ptr == 'x') {
    const auto dim = std::from_chars(tokens.ptr + 1, end, size.head_dim);
    const bool good = dim.ec == std::errc() && dim.ptr == end && size.tokens > 0 &&
                      size.tokens <= 1 << 20 && size.head_dim > 0 && size.head_dim <= 4096;
    if (good) return size;
  }
  throw usage_error("--head " + text +
                    ": expected tokens (up to 1048576) and channels (up to 4096): 17776x64");
}

}  // namespace

std::vector<HeadSize> BenchOptions::head_sizes() const {
  std::vector<HeadSize> sizes;
  for (const std::string& text : heads.empty() ? kHeads : heads) sizes.push_back(parse_head(text));
  return sizes;
}

bool BenchOptions::wants(const std::string& name) const {
  const auto& wanted = cases.empty() ? kUsualCases : cases;
  return std::find(wanted.begin(), wanted.end(), name) != wanted.end();
}

void add_bench_options(CommandParser& command, BenchOptions& o) {
  command
      .add_option("--folder", o.folder,
                  "where the export is written, up to 2.2 GB (default: the temporary folder)")
      .type_name("DIR");
  command
      .add_option("--head", o.heads,
                  "tokens and channels of a head (repeatable; default 17776x64 and 32760x128)")
      .type_name("SxD")
      .delimiter(',')
      .one_value_each();
  command
      .add_option(
          "--case", o.cases,
          "what to time: lse, weights, metrics (all of stats), pyramid (16 x 16 blocks), row (one\n"
          "query), tile (2048 x 2048, its rows known), export, masks, threads (lse by 1, 2, 4\n"
          "and so on) (default: lse, weights, export and masks)")
      .type_name("NAME")
      .delimiter(',')
      .one_value_each()
      .one_of(kCases);
  command.add_option("--repeats", o.repeats, "runs of each; the best counts (default 5)")
      .in_range(1, 1000)
      .type_name("N");
  add_output_options(command, o, {});
}

}  // namespace attnscope
