#pragma once

#include <span>
#include <string>

#include "core/stream/launch_profile.h"

namespace attnscope {

/// A line a shape of launch under a line of headings, columns at least two spaces apart; "-" where
/// a number has no meaning. For people, and for bench/cuda_figures.py.
std::string profile_table(std::span<const LaunchProfile> profiles);

}  // namespace attnscope
