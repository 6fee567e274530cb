#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "cluster/launch.h"
#include "cluster/mpi/module.h"
#include "core/base/error.h"
#include "core/base/shared_work.h"

namespace attnscope {

/// How a run of several processes ended that did not come to its end: the same everywhere, but for
/// `speaks`, which is true for the one of them that says it. A value.
struct TeamFailure {
  bool speaks = false;
  ErrorCode code = ErrorCode::interrupted;
  std::string message;
  int64_t kept = 0;         ///< all of Team::keep()
  bool unanswered = false;  ///< the others are gone, or stand still: stop_all() is what is left
};

/// Thrown by exchange(), collect() and add_up() where another process failed.
class TeamFailed : public std::exception {
 public:
  explicit TeamFailed(TeamFailure failure) : failure_(std::move(failure)) {}
  const char* what() const noexcept override { return failure_.message.c_str(); }
  const TeamFailure& failure() const { return failure_; }

 private:
  TeamFailure failure_;
};

/// The processes that do one run together. One alone is a team too. A run asks them all for the
/// same exchanges in the same order; where one fails, the others learn it at their next exchange,
/// and are asked to stop meanwhile. Where a process is killed, its launcher ends the others.
/// next_unit() is thread-safe; everything else is one thread's.
class Team : public SharedWork {
 public:
  /// This process alone.
  Team() = default;
  /// Every process of the job that MPI made. `stop` is asked to stop when that of another process
  /// is, and the others are when this one is.
  Team(std::unique_ptr<TeamLink> link, std::stop_source stop);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team() override;

  bool is_alone() const { return link_ == nullptr; }
  int rank() const { return link_ ? link_->rank() : 0; }
  int size() const { return link_ ? link_->size() : 1; }
  int processes() const override { return size(); }
  bool is_first() const { return rank() == 0; }
  /// Among those of this host.
  int local_rank() const { return link_ ? link_->local_rank() : 0; }
  int local_size() const { return link_ ? link_->local_size() : 1; }

  void begin_units(int64_t count) override;
  std::optional<int64_t> next_unit() override;
  void add_up(std::span<int64_t> numbers) override;
  /// Sets the number of pieces that this process has done and kept, whatever becomes of the run.
  void keep(int64_t pieces) { kept_ = pieces; }
  int64_t kept() const { return kept_; }
  /// The text of every process, by rank. Waits for all; throws TeamFailed where one has failed.
  std::vector<std::string> exchange(const std::string& mine);
  /// As exchange(), but only the first process gets the texts; the others get none, which spares
  /// them large texts.
  std::vector<std::string> collect(const std::string& mine);
  /// Tells the others that this process cannot go on, as its part of their next exchange, and hears
  /// of what the others failed. Nothing may follow but leave().
  TeamFailure fail(ErrorCode code, const std::string& message);
  /// The end, of all together.
  void leave();
  /// Ends the job, of all that are left of it.
  void stop_all(int code) { link_->stop_all(code); }

 private:
  struct Answers;
  bool gather(int64_t length, const std::string* failure, double seconds, Answers& answers);
  std::vector<std::string> texts_for(const std::string& mine, const Answers& answers);
  Answers answers_to(int64_t length);
  TeamFailure judge(const Answers& answers) const;
  void watch(const std::stop_token& end);

  std::unique_ptr<TeamLink> link_;
  std::stop_source stop_;
  std::mutex units_mutex_;  ///< of the three that follow
  int64_t units_ = 0, first_unit_ = 0;
  bool units_given_ = true;
  std::atomic<int64_t> next_{0};  ///< of a process alone
  std::atomic<int64_t> kept_{0};
  std::jthread watcher_;  ///< last: it uses everything else
};

/// Loads the MPI module and joins the job that `launch` tells of. Throws Error(unavailable), one
/// line, where the program has none, it cannot be loaded, srun was not told to start it for MPI,
/// MPI does not start, or knows of another number of processes than the launcher. To be called
/// once, before threads are started: those that MPI starts must not get the signals that ask a run
/// to stop.
std::unique_ptr<Team> join_mpi(const Launch& launch, const std::stop_source& stop);

}  // namespace attnscope
