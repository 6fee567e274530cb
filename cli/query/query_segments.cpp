#include "cli/query/query_segments.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr const char* kAll = "all";

/// The sequence that the volumes of a call show.
const TokenGrid& shown_of(const QueryRequest& request, const SelectedCall& selected) {
  const AttentionProblem& problem = *selected.call->problem;
  return request.reverse ? problem.query_tokens() : problem.key_tokens();
}

std::vector<std::string> names_with_grid(const TokenGrid& tokens) {
  std::vector<std::string> names;
  for (const TokenSegment& segment : tokens.segments()) {
    if (segment.is_raster()) names.push_back(segment.name);
  }
  return names;
}

std::string file_of(const std::string& out, const std::string& segment) {
  const std::filesystem::path path(out);
  return (path.parent_path() / (path.stem().string() + "-" + segment + path.extension().string()))
      .string();
}

}  // namespace

bool asks_all_segments(const QueryRequest& request, const Capture& capture) {
  if (request.segment != kAll) return false;
  const auto calls = capture.select(parse_selection(request.selection));
  return std::none_of(calls.begin(), calls.end(), [&](const SelectedCall& selected) {
    const auto& segments = shown_of(request, selected).segments();
    return std::any_of(segments.begin(), segments.end(),
                       [](const TokenSegment& segment) { return segment.name == kAll; });
  });
}

std::vector<QueryRequest> each_segment(const QueryRequest& request, const Capture& capture) {
  if (request.out.empty() || request.json) {
    throw usage_error(
        "--segment all: writes a file for each segment: give -o FILE, without --json");
  }
  const auto calls = capture.select(parse_selection(request.selection));
  const auto names = names_with_grid(shown_of(request, calls.front()));
  if (names.empty()) {
    throw usage_error("--segment all: " + calls.front().call->problem->name() +
                      " has no token map with a grid in row-major order");
  }
  for (const SelectedCall& selected : calls) {
    if (names_with_grid(shown_of(request, selected)) == names) continue;
    throw usage_error(fmt::format(
        "--segment all: {} has other segments than {}: select calls of one kind with --kind",
        selected.call->problem->name(), calls.front().call->problem->name()));
  }
  std::vector<QueryRequest> requests;
  for (const std::string& name : names) {
    requests.push_back(request);
    requests.back().segment = name;
    requests.back().out = file_of(request.out, name);
  }
  return requests;
}

}  // namespace attnscope
