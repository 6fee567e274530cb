#include "cli/common/console.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/base/version.h"
#include "io/files/json_text.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

bool json_printed = false;
AnswerFiles answer_files;

OrderedJson inputs_json(const std::vector<std::string>& inputs) {
  if (inputs.size() == 1) return inputs.front();
  return inputs.empty() ? OrderedJson() : OrderedJson(inputs);
}

}  // namespace

void Console::say(std::string_view text) const {
  if (!quiet_) warn(text);
}

Console Console::silenced() const {
  Console copy = *this;
  copy.quiet_ = copy.silent_ = true;
  return copy;
}

void Console::warn(std::string_view text) const {
  if (silent_) return;
  write_error_text(fmt::format("attnscope: {}\n", one_line(text)));
}

Progress::Progress(const Console& console, std::string title, int64_t total, double amount_per_step,
                   std::string amount_unit)
    : active_(!console.quiet()),
      terminal_(isatty(STDERR_FILENO) == 1),
      title_(std::move(title)),
      total_(std::max<int64_t>(total, 1)),
      amount_per_step_(amount_per_step),
      amount_unit_(std::move(amount_unit)),
      start_(Clock::now()),
      last_draw_(start_ - std::chrono::seconds(1)) {}

Progress::~Progress() {
  if (line_open_) write_error_text("\n");
}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void Progress::update(int64_t done, int64_t skipped) {
  if (!active_) return;
  const double fraction = static_cast<double>(done) / static_cast<double>(total_);
  const double elapsed = seconds();
  const auto worked = static_cast<double>(done - skipped);
  const double rate = elapsed > 0 ? worked * amount_per_step_ / elapsed : 0.0;
  const double left = worked > 0 ? elapsed * static_cast<double>(total_ - done) / worked : 0.0;
  if (terminal_) {
    const auto now = Clock::now();
    if (now - last_draw_ < std::chrono::milliseconds(100) && done < total_) return;
    last_draw_ = now;
    draw_bar(fraction, rate, left);
    return;
  }
  // A run that ends within a second needs no report.
  if (elapsed < 1) return;
  const int decile = static_cast<int>(fraction * 10);
  if (decile <= last_decile_) return;
  last_decile_ = decile;
  write_error_text(fmt::format("attnscope: {} {} %, {}{}/s, {} left\n", title_, decile * 10,
                               format_count(rate), amount_unit_, format_seconds(left)));
}

void Progress::draw_bar(double fraction, double rate, double seconds_left) {
  constexpr int kWidth = 28;
  const int filled = std::clamp(static_cast<int>(fraction * kWidth), 0, kWidth);
  write_error_text(fmt::format("\r{} [{}{}] {:3.0f} %  {}{}/s  {} left \x1b[K", title_,
                               std::string(static_cast<size_t>(filled), '='),
                               std::string(static_cast<size_t>(kWidth - filled), ' '),
                               fraction * 100, format_count(rate), amount_unit_,
                               format_seconds(seconds_left)));
  line_open_ = true;
}

void write_error_text(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void set_answer_files(const AnswerFiles& files) { answer_files = files; }

void set_answer_out(const std::string& out) { answer_files.out = out; }

void print_json(const OrderedJson& json, bool pretty) {
  const std::pair<const char*, OrderedJson> common[] = {
      {"format", nullptr},
      {"attnscope_version", version()},
      {"input", inputs_json(answer_files.inputs)},
      {"out", answer_files.out.empty() ? OrderedJson() : OrderedJson(answer_files.out)},
      {"capture_hash", nullptr}};
  OrderedJson answer;
  for (const auto& [name, value] : common) {
    const auto own = json.find(name);
    answer[name] = own == json.end() ? value : *own;
  }
  for (const auto& [name, value] : json.items()) answer[name] = value;
  print_bare_json(answer, pretty);
}

void print_bare_json(const OrderedJson& json, bool pretty) {
  json_printed = true;
  fmt::print("{}\n", json_text(json, pretty ? 2 : -1));
}

OrderedJson known_text(const std::string& text) {
  return text.empty() ? OrderedJson() : OrderedJson(text);
}

bool has_printed_json() noexcept { return json_printed; }

bool finish_standard_output() noexcept {
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

std::string format_seconds(double seconds) {
  if (seconds < 0.0995) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 9.95) return fmt::format("{:.2f} s", seconds);
  if (seconds < 59.5) return fmt::format("{:.0f} s", seconds);
  const auto total = static_cast<int64_t>(std::llround(seconds));
  if (total < 3600) return fmt::format("{} min {} s", total / 60, total % 60);
  return fmt::format("{} h {} min", total / 3600, total % 3600 / 60);
}

std::string format_count(double value) {
  constexpr std::array<std::string_view, 6> kPrefixes{"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  while (value >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  const int digits = value >= 99.95 || prefix == 0 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, digits, kPrefixes[prefix]);
}

}  // namespace attnscope
