#include "cluster/launch.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace attnscope {
namespace {

/// The environment variables of a launcher, and perhaps one more that only it sets.
struct Launcher {
  const char* rank;
  const char* count;
  const char* sign = nullptr;
};

constexpr Launcher kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    // Of the step: what the job may have, SLURM_NTASKS, is set for its script as well.
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    // Names so plain that others use them.
    {"RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"}};

std::optional<int64_t> count_of(const char* text) {
  if (text == nullptr) return std::nullopt;
  const std::string_view word = text;
  int64_t value = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = error == std::errc() && end == word.data() + word.size() && value >= 0;
  return whole ? std::optional(value) : std::nullopt;
}

}  // namespace

const char* environment_variable(const char* name) { return std::getenv(name); }

std::string Launch::text() const {
  return "task " + std::to_string(rank) + " of " + std::to_string(count) + " (" + source + ")";
}

std::optional<Launch> find_launch(const Environment& variable) {
  for (const Launcher& launcher : kLaunchers) {
    if (launcher.sign != nullptr && variable(launcher.sign) == nullptr) continue;
    const auto rank = count_of(variable(launcher.rank));
    const auto count = count_of(variable(launcher.count));
    if (!rank || !count || *rank >= *count) continue;
    if (*count == 1) return std::nullopt;
    return Launch{std::string(launcher.rank) + " of " + launcher.count, *rank, *count};
  }
  return std::nullopt;
}

}  // namespace attnscope
