#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "io/files/json_types.h"

namespace attnscope {

/// Narrates a command to its user on standard error, so that standard output carries data alone,
/// and holds the stop that a user's interrupt requests (InterruptWatch). Copies share the stop. Not
/// thread-safe apart from the stop and Progress, which serialises its own updates.
class Console {
 public:
  explicit Console(bool quiet) : quiet_(quiet) {}
  /// A copy that says nothing at all: for a process whose messages another one prints as well.
  Console silenced() const;
  bool quiet() const { return quiet_; }
  /// "attnscope: TEXT" on standard error, unless quiet.
  void say(std::string_view text) const;
  /// As say(), but also when quiet: for things that a user must not miss.
  void warn(std::string_view text) const;
  /// The stop of the whole command; an InterruptWatch requests it.
  std::stop_source stop() const { return stop_; }

 private:
  bool quiet_ = false;
  bool silent_ = false;
  std::stop_source stop_;
};

/// A progress display on standard error: a bar with rate and time left on a terminal, otherwise a
/// line per 10 % after the first second; nothing when quiet. update() may be called from one thread
/// at a time.
class Progress {
 public:
  /// `per_second_unit` names what `amount` counts, for example "entries".
  Progress(const Console& console, std::string title, int64_t total, double amount_per_step,
           std::string amount_unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// `skipped` of the `done` steps cost nothing and count in no rate.
  void update(int64_t done, int64_t skipped = 0);
  double seconds() const;

 private:
  void draw_bar(double fraction, double rate, double seconds_left);
  using Clock = std::chrono::steady_clock;
  bool active_ = false;
  bool terminal_ = false;
  bool line_open_ = false;
  std::string title_;
  int64_t total_ = 0;
  double amount_per_step_ = 0;
  std::string amount_unit_;
  int last_decile_ = 0;
  Clock::time_point start_;
  Clock::time_point last_draw_;
};

/// Writes `text` to standard error as it is. A standard error that is closed or full is no reason
/// to fail: nothing is thrown.
void write_error_text(std::string_view text) noexcept;
/// The files that a command is about, as every object that it prints says: "input" and "out".
struct AnswerFiles {
  std::vector<std::string> inputs;  ///< as they were named
  std::string out;                  ///< empty: none
};
void set_answer_files(const AnswerFiles& files);
/// The output under its own name: {shard} has become the part's.
void set_answer_out(const std::string& out);
/// A command's answer on standard output: the object, behind its "format" with what all answers
/// have ("attnscope_version", "input", "out", "capture_hash") unless it has it itself, and a line
/// break. Bytes that are no UTF-8 (file names may hold any) are replaced. Indented where `pretty`.
void print_json(const OrderedJson& json, bool pretty);
/// An object as it is, instead of an answer.
void print_bare_json(const OrderedJson& json, bool pretty);
/// The text in an answer; null where it is empty, which nobody recorded.
OrderedJson known_text(const std::string& text);
bool has_printed_json() noexcept;
/// True where all standard output was written without error; call it once, at the end.
bool finish_standard_output() noexcept;

/// "12.3 s", "4 min 10 s", "2 h 5 min".
std::string format_seconds(double seconds);
/// "3.16 G", "12.5 M" with an SI prefix and three digits.
std::string format_count(double value);

}  // namespace attnscope
