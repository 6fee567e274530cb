#include "viewer/textures/upload_choice.h"

#include <algorithm>

namespace attnscope {
namespace {

/// The median of all but the first: a few uploads are always held up by something else.
double typical(const std::vector<double>& times) {
  std::vector<double> sorted(times.begin() + 1, times.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace

bool UploadChoice::decided() const {
  return std::all_of(times_.begin(), times_.end(),
                     [](const auto& times) { return times.size() >= kTrials; });
}

UploadWay UploadChoice::next() const {
  const auto& staging = of(UploadWay::staging);
  const auto& interop = of(UploadWay::interop);
  if (!decided()) {
    return interop.size() <= staging.size() ? UploadWay::interop : UploadWay::staging;
  }
  return typical(interop) < typical(staging) ? UploadWay::interop : UploadWay::staging;
}

void UploadChoice::measured(UploadWay way, double time) {
  if (!decided()) of(way).push_back(time);
}

}  // namespace attnscope
