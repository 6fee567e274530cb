#include "core/base/memory_budget.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "core/base/error.h"

namespace attnscope {

MemoryReservation::MemoryReservation(MemoryReservation&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

MemoryReservation& MemoryReservation::operator=(MemoryReservation&& other) noexcept {
  if (this != &other) {
    if (budget_ != nullptr) budget_->release(bytes_);
    budget_ = std::exchange(other.budget_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

MemoryReservation::~MemoryReservation() {
  if (budget_ != nullptr) budget_->release(bytes_);
}

MemoryReservation MemoryBudget::reserve(int64_t bytes, std::string_view purpose) {
  assert(bytes >= 0);
  int64_t used = used_.load();
  do {
    if (bytes > limit_ - used) {
      throw Error(ErrorCode::resource, std::string(purpose) + ": needs " + format_bytes(bytes) +
                                           " of memory, but " + format_bytes(used) + " of " +
                                           format_bytes(limit_) + " are taken");
    }
  } while (!used_.compare_exchange_weak(used, used + bytes));
  int64_t peak = peak_.load();
  while (peak < used + bytes && !peak_.compare_exchange_weak(peak, used + bytes)) {
  }
  return {this, bytes};
}

MemoryRoom MemoryBudget::room(int64_t reserved) const {
  const int64_t taken = used() + reserved;
  return {std::max(limit_ - taken, int64_t{0}), taken + beside_};
}

void MemoryBudget::release(int64_t bytes) noexcept { used_.fetch_sub(bytes); }

namespace {

struct SizeUnit {
  std::string_view name;
  double bytes;
};

constexpr std::array<SizeUnit, 9> kUnits{{{"b", 1},
                                          {"kib", 0x1p10},
                                          {"mib", 0x1p20},
                                          {"gib", 0x1p30},
                                          {"tib", 0x1p40},
                                          {"kb", 1e3},
                                          {"mb", 1e6},
                                          {"gb", 1e9},
                                          {"tb", 1e12}}};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

}  // namespace

int64_t parse_size(std::string_view text, std::string_view option, int64_t available) {
  const bool shares = available >= 0;
  const auto fail = [&](std::string_view why) {
    return usage_error(std::string(option) + " " + std::string(text) + ": " + std::string(why));
  };
  double number = 0;
  const char* end = text.data() + text.size();
  const bool digit = !text.empty() && text[0] >= '0' && text[0] <= '9';
  const auto parsed = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (!digit || parsed.ec != std::errc{}) {
    throw fail(shares ? "expected a size like 256MiB, 4GB or 50%"
                      : "expected a size like 256MiB or 4GB");
  }
  // Figures are printed with a space before the unit.
  const char* const name = parsed.ptr + (parsed.ptr != end && *parsed.ptr == ' ' ? 1 : 0);
  const std::string unit = lower({name, static_cast<size_t>(end - name)});
  if (unit == "%" && !shares) throw fail("expected a size like 256MiB or 4GB, no share");
  if (unit == "%") {
    if (number <= 0 || number > 100) throw fail("a share must be above 0% and at most 100%");
    return static_cast<int64_t>(static_cast<double>(available) * (number / 100));
  }
  for (const SizeUnit& candidate : kUnits) {
    if (unit != candidate.name) continue;
    const double bytes = std::floor(number * candidate.bytes);
    if (bytes < 1) throw fail("must be at least one byte");
    if (bytes >= 0x1p63) throw fail("is larger than any memory");
    return static_cast<int64_t>(bytes);
  }
  const std::string units =
      shares ? "B, KiB, MiB, GiB, KB, MB, GB or %" : "B, KiB, MiB, GiB, KB, MB or GB";
  throw fail(unit.empty() ? "needs a unit: " + units : "unknown unit (expected " + units + ")");
}

std::string format_bytes(int64_t bytes) {
  constexpr std::array<const char*, 7> kNames{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  // 1023.995 would print as 1024.00.
  while (std::abs(value) >= (unit == 0 ? 1024.0 : 1023.995) && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.2f %s", value, kNames[unit]);
  return text.data();
}

}  // namespace attnscope
