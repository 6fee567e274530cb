#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "cli/common/capture_options.h"
#include "io/capture/capture.h"
#include "io/check/computed_rows.h"
#include "io/files/json_types.h"

namespace attnscope {

/// The section "about": what was captured, from which model, and how that is known.
OrderedJson about_capture(const Capture& capture, const std::vector<SelectedCall>& calls);

/// The section "checks": a few recorded rows of some calls, as the backend computes them. Reads the
/// same rows of the same calls each time.
OrderedJson check_for_report(const std::vector<SelectedCall>& calls, const CaptureOptions& options,
                             const CheckMeans& means, int threads, const std::stop_token& stop);

/// What could not be read of a capture, or was refused when it was recorded, a line each.
std::vector<std::string> problems_of(const Capture& capture);

/// What the capture does not have, and what the page therefore lacks, a line each.
std::vector<std::string> missing_facts(const Capture& capture,
                                       const std::vector<SelectedCall>& calls);

}  // namespace attnscope
