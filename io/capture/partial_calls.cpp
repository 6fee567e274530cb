#include "io/capture/partial_calls.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/capture/call/call_part.h"

namespace attnscope {
namespace {

bool is_partial(const CallEntry& call) {
  const auto part = part_of(call);
  return part && part->has_some_tokens();
}

}  // namespace

bool has_partial_calls(const Capture& capture) {
  return std::any_of(capture.calls().begin(), capture.calls().end(), is_partial);
}

void require_whole_calls(const Capture& capture) {
  const auto found = std::find_if(capture.calls().begin(), capture.calls().end(), is_partial);
  if (found == capture.calls().end()) return;
  const std::filesystem::path folder =
      std::filesystem::absolute(found->file).lexically_normal().parent_path().parent_path();
  throw file_error(found->file.string(), "part",
                   part_text(*part_of(*found)) + ", whose rows need the other ranks': attnscope " +
                       "convert --stitch " + folder.string() + " -o OUT joins them");
}

}  // namespace attnscope
