#include "cluster/mpi/module.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

namespace attnscope {
namespace {

/// MPI counts in int; nothing that is sent here is large.
constexpr int64_t kMostBytes = int64_t{256} << 20;
/// Pauses between looks at whether others have come.
constexpr std::chrono::microseconds kLongestPause{2000};
/// Kinds of messages.
constexpr int kText = 0;
constexpr int kAsk = 1;
constexpr int kAnswer = 2;

/// A job under MPI. What goes wrong in MPI itself ends the job, as MPI does by itself
/// (MPI_ERRORS_ARE_FATAL): a file that is being written stays, to be gone on with.
class MpiJob final : public TeamLink {
 public:
  MpiJob();
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }
  int local_size() const override { return local_size_; }
  bool gather_numbers(int64_t mine, int64_t* all, double seconds) override;
  bool send(int from, char* bytes, int64_t count, double seconds) override;
  bool pass(int from, char* bytes, int64_t count, double seconds) override;
  bool add_up(int64_t* numbers, int64_t count, double seconds) override;
  int64_t add(int number, int64_t value) override;
  void leave() override;
  void stop_all(int code) override;

 private:
  bool make_window();
  void serve();
  int64_t ask(int number, int64_t value);
  bool wait_for(MPI_Request request, double seconds);
  template <typename Start>
  bool in_pieces(int64_t count, double seconds, const Start& start);

  /// MPI is asked for calls of one thread at a time, which every library can do.
  std::mutex mutex_;
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  MPI_Win window_ = MPI_WIN_NULL;      ///< none where rank 0 is asked by messages
  int64_t* numbers_ = nullptr;         ///< those of rank 0 are the job's
  std::array<int64_t, 2> answered_{};  ///< the same without a window
};

MpiJob::MpiJob() {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &local_rank_);
  MPI_Comm_size(host, &local_size_);
  MPI_Comm_free(&host);
  if (make_window()) {
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
    if (rank_ == 0) {
      std::fill(numbers_, numbers_ + 2, 0);
      MPI_Win_sync(window_);
    }
  } else {
    window_ = MPI_WIN_NULL;
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/// True where all processes have the window. Some installations lack one-sided access between hosts
/// (Debian's Open MPI 4.1 over plain TCP, as it is configured).
bool MpiJob::make_window() {
  const MPI_Aint bytes = rank_ == 0 ? 2 * sizeof(int64_t) : 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int mine = MPI_Win_allocate(bytes, sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &numbers_,
                              &window_) == MPI_SUCCESS
                 ? 1
                 : 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  int all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all != 0;
}

/// Answers what others have asked rank 0 for; with the mutex.
void MpiJob::serve() {
  if (window_ != MPI_WIN_NULL || rank_ != 0) return;
  for (;;) {
    int there = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, kAsk, MPI_COMM_WORLD, &there, &status);
    if (there == 0) return;
    std::array<int64_t, 2> asked{};
    MPI_Recv(asked.data(), 2, MPI_INT64_T, status.MPI_SOURCE, kAsk, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    int64_t& number = answered_[static_cast<size_t>(asked[0])];
    // So small a message is on its way at once.
    MPI_Send(&number, 1, MPI_INT64_T, status.MPI_SOURCE, kAnswer, MPI_COMM_WORLD);
    number += asked[1];
  }
}

/// add() by messages.
int64_t MpiJob::ask(int number, int64_t value) {
  if (rank_ == 0) {
    const std::lock_guard lock(mutex_);
    serve();
    const int64_t before = answered_[static_cast<size_t>(number)];
    answered_[static_cast<size_t>(number)] += value;
    return before;
  }
  const std::array<int64_t, 2> asked{number, value};
  int64_t before = 0;
  MPI_Request sent = MPI_REQUEST_NULL, answer = MPI_REQUEST_NULL;
  {
    // Two threads' answers come in the order in which they asked.
    const std::lock_guard lock(mutex_);
    MPI_Irecv(&before, 1, MPI_INT64_T, 0, kAnswer, MPI_COMM_WORLD, &answer);
    MPI_Isend(asked.data(), 2, MPI_INT64_T, 0, kAsk, MPI_COMM_WORLD, &sent);
  }
  wait_for(sent, 0);
  wait_for(answer, 0);
  return before;
}

/// Waits without keeping a processor busy: others compute on it meanwhile.
bool MpiJob::wait_for(MPI_Request request, double seconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (auto pause = std::chrono::microseconds(20);; pause = std::min(2 * pause, kLongestPause)) {
    {
      const std::lock_guard lock(mutex_);
      serve();
      int done = 0;
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done != 0) return true;
    }
    const std::chrono::duration<double> waited = Clock::now() - begin;
    if (seconds > 0 && waited.count() > seconds) return false;
    std::this_thread::sleep_for(pause);
  }
}

bool MpiJob::gather_numbers(int64_t mine, int64_t* all, double seconds) {
  MPI_Request request = MPI_REQUEST_NULL;
  {
    const std::lock_guard lock(mutex_);
    MPI_Iallgather(&mine, 1, MPI_INT64_T, all, 1, MPI_INT64_T, MPI_COMM_WORLD, &request);
  }
  return wait_for(request, seconds);
}

/// Starts a transfer of each piece of `count` bytes, which MPI can count, and waits for its end.
template <typename Start>
bool MpiJob::in_pieces(int64_t count, double seconds, const Start& start) {
  for (int64_t done = 0; done < count;) {
    const int64_t now = std::min(count - done, kMostBytes);
    MPI_Request request = MPI_REQUEST_NULL;
    {
      const std::lock_guard lock(mutex_);
      start(done, static_cast<int>(now), &request);
    }
    if (!wait_for(request, seconds)) return false;
    done += now;
  }
  return true;
}

bool MpiJob::send(int from, char* bytes, int64_t count, double seconds) {
  return in_pieces(count, seconds, [&](int64_t at, int now, MPI_Request* request) {
    MPI_Ibcast(bytes + at, now, MPI_BYTE, from, MPI_COMM_WORLD, request);
  });
}

bool MpiJob::pass(int from, char* bytes, int64_t count, double seconds) {
  return in_pieces(count, seconds, [&](int64_t at, int now, MPI_Request* request) {
    if (rank_ == 0) {
      MPI_Irecv(bytes + at, now, MPI_BYTE, from, kText, MPI_COMM_WORLD, request);
    } else {
      MPI_Isend(bytes + at, now, MPI_BYTE, 0, kText, MPI_COMM_WORLD, request);
    }
  });
}

bool MpiJob::add_up(int64_t* numbers, int64_t count, double seconds) {
  return in_pieces(count * 8, seconds, [&](int64_t at, int now, MPI_Request* request) {
    MPI_Iallreduce(MPI_IN_PLACE, numbers + at / 8, now / 8, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD,
                   request);
  });
}

int64_t MpiJob::add(int number, int64_t value) {
  if (window_ == MPI_WIN_NULL) return ask(number, value);
  const std::lock_guard lock(mutex_);
  int64_t before = 0;
  MPI_Fetch_and_op(&value, &before, MPI_INT64_T, 0, number, MPI_SUM, window_);
  MPI_Win_flush(0, window_);
  return before;
}

void MpiJob::leave() {
  if (window_ == MPI_WIN_NULL) {
    // Rank 0 answers until nobody asks any more.
    MPI_Request request = MPI_REQUEST_NULL;
    {
      const std::lock_guard lock(mutex_);
      MPI_Ibarrier(MPI_COMM_WORLD, &request);
    }
    wait_for(request, 0);
  }
  const std::lock_guard lock(mutex_);
  if (window_ != MPI_WIN_NULL) {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }
  MPI_Finalize();
}

void MpiJob::stop_all(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

}  // namespace
}  // namespace attnscope

const char* attnscope_mpi_abi() {
  static const std::string text = attnscope::mpi_module_abi();
  return text.c_str();
}

attnscope::TeamLink* attnscope_mpi_join(char* reason, size_t reason_bytes) {
  int level = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS) {
    std::snprintf(reason, reason_bytes, "MPI does not start");
    return nullptr;
  }
  if (level < MPI_THREAD_SERIALIZED) {
    std::snprintf(reason, reason_bytes, "this MPI library does not allow calls of several threads");
    MPI_Finalize();
    return nullptr;
  }
  return new attnscope::MpiJob();
}
