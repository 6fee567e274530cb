#include "io/helper/ask_helper.h"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "io/files/json_types.h"
#include "io/helper/helper_process.h"

namespace attnscope {
namespace {

using std::chrono::nanoseconds;
using Kind = HelperReply::Kind;

/// However much earlier questions took.
constexpr std::chrono::seconds kLeast{1};

double seconds_of(nanoseconds time) { return std::chrono::duration<double>(time).count(); }

/// The one helper of this process, and what questions without an answer have left of its patience.
class Helper {
 public:
  void set_program(HelperProgram program) {
    const std::lock_guard guard(mutex_);
    forget_foreign();
    process_.reset();
    program_ = std::move(program);
    left_ = {program_->processor_time, program_->standstill};
    computed_.clear();
  }

  Json ask(const HelperQuestion& question, const std::string& file, const Json& arguments,
           const std::stop_token& stop);

 private:
  /// In a process that was forked from the helper's parent: the helper is not ours.
  void forget_foreign() {
    if (process_ && owner_ != getpid()) process_->abandon();
    if (owner_ != getpid()) process_.reset();
  }
  std::unique_ptr<HelperProcess> start(const std::string& file, const std::stop_token& stop);
  HelperPatience patience(bool is_new) const;
  void spend(const std::string& file, const HelperReply& reply, const HelperPatience& granted);
  Error verdict(const HelperReply& reply, const HelperPatience& granted,
                const std::optional<int>& status, const std::string& file) const;

  std::mutex mutex_;
  std::optional<HelperProgram> program_;
  std::unique_ptr<HelperProcess> process_;
  pid_t owner_ = -1;  ///< the process that started it
  HelperPatience left_{};
  /// Processor time that questions about a file took without an answer.
  std::map<std::string, nanoseconds> computed_;
};

HelperPatience Helper::patience(bool is_new) const {
  HelperPatience granted = left_;
  // One that is asked for nothing else has the last word, and most of the time.
  if (!is_new) granted.processor_time /= 4;
  granted.processor_time = std::max<nanoseconds>(granted.processor_time, kLeast);
  granted.standstill = std::max<nanoseconds>(granted.standstill, kLeast);
  return granted;
}

Error broke_down(const std::string& file) {
  return file_error(file, "", "the library that reads it broke down: the file is damaged");
}

/// A verdict on a helper that is gone.
Error end_error(const std::optional<int>& status, const std::string& file) {
  constexpr int kOfItsOwn[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
  if (!status || !WIFSIGNALED(*status)) return broke_down(file);
  const int number = WTERMSIG(*status);
  if (std::find(std::begin(kOfItsOwn), std::end(kOfItsOwn), number) != std::end(kOfItsOwn)) {
    return broke_down(file);
  }
  return Error(ErrorCode::resource,
               fmt::format("{}: the process that read it was killed from outside (signal {}), as "
                           "systems do that run out of memory: nothing is known against the file; "
                           "try again",
                           file, number));
}

/// The error for a reply without an answer, after its helper has ended with `status`.
Error Helper::verdict(const HelperReply& reply, const HelperPatience& granted,
                      const std::optional<int>& status, const std::string& file) const {
  switch (reply.kind) {
    case Kind::stopped:
      return Error(ErrorCode::interrupted, "interrupted while reading " + file);
    case Kind::looping:
      return file_error(file, "",
                        fmt::format("reading it took more than {:.0f} s of processor time: the "
                                    "file is damaged",
                                    std::floor(seconds_of(computed_.at(file)))));
    case Kind::standstill:
      return Error(
          ErrorCode::resource,
          fmt::format("{}: reading it stood still for {:.0f} s (after {:.2f} s of "
                      "processor time): the machine is busy or its disk does not answer; "
                      "nothing is known against the file; try again",
                      file, seconds_of(granted.standstill), seconds_of(reply.processor_time)));
    case Kind::ended:
      return end_error(status, file);
    case Kind::message:
      break;
  }
  const auto error = unpack_error(reply.message);
  return error ? *error : broke_down(file);
}

void Helper::spend(const std::string& file, const HelperReply& reply,
                   const HelperPatience& granted) {
  if (reply.kind == Kind::looping) {
    computed_[file] += reply.processor_time;
    left_.processor_time -= std::min(left_.processor_time, reply.processor_time);
  } else if (reply.kind == Kind::standstill) {
    left_.standstill -= std::min(left_.standstill, granted.standstill);
  }
}

std::unique_ptr<HelperProcess> Helper::start(const std::string& file, const std::stop_token& stop) {
  const std::string purpose = file + ": it is read in a process of its own";
  if (!program_) {
    throw Error(ErrorCode::unavailable, purpose + ", and no program for it was named");
  }
  owner_ = getpid();
  auto process = std::make_unique<HelperProcess>(program_->path, program_->arguments, purpose);
  const HelperPatience granted = patience(true);
  const HelperReply greeting = process->await_greeting(granted, stop);
  if (greeting.kind == Kind::message && greeting.message == helper_greeting()) return process;
  spend(file, greeting, granted);
  if (greeting.kind == Kind::stopped || greeting.kind == Kind::standstill) {
    throw verdict(greeting, granted, std::nullopt, file);
  }
  throw Error(ErrorCode::unavailable,
              fmt::format("{}, but the program {} does not serve as one (expected attnscope {})",
                          purpose, program_->path, helper_greeting().back()));
}

/// The answer, where the reply is one.
std::optional<Json> answer_of(const HelperReply& reply) {
  if (reply.kind != Kind::message || reply.message.size() != 2) return std::nullopt;
  if (reply.message[0] != kHelperAnswer) return std::nullopt;
  Json answer = Json::parse(reply.message[1], nullptr, false);
  return answer.is_discarded() ? std::nullopt : std::optional(std::move(answer));
}

Json Helper::ask(const HelperQuestion& question, const std::string& file, const Json& arguments,
                 const std::stop_token& stop) {
  const std::lock_guard guard(mutex_);
  forget_foreign();
  std::error_code gone;
  const HelperMessage message{std::string(question.name),
                              std::filesystem::current_path(gone).string(), file, arguments.dump()};
  while (true) {
    // It is ours again once it has answered; an exception ends it.
    auto process = process_ ? std::move(process_) : start(file, stop);
    const bool is_new = process->answers() == 0;
    const HelperPatience granted = patience(is_new);
    const HelperReply reply = process->ask(message, granted, stop);
    if (auto answer = answer_of(reply)) {
      process_ = std::move(process);
      return std::move(*answer);
    }
    spend(file, reply, granted);
    const auto status = process->end();
    const bool is_last = is_new || reply.kind == Kind::stopped || reply.kind == Kind::standstill;
    if (is_last) throw verdict(reply, granted, status, file);
    // Another file may have spoilt that helper. A new one has the last word.
  }
}

/// Never destroyed: threads may ask until the process ends, with which the helper ends by itself.
Helper& helper() {
  static Helper& instance = *new Helper;
  return instance;
}

}  // namespace

void set_helper_program(HelperProgram program) { helper().set_program(std::move(program)); }

Json ask_helper(const HelperQuestion& question, const std::string& file, const Json& arguments,
                const std::stop_token& stop) {
  return helper().ask(question, file, arguments, stop);
}

}  // namespace attnscope
