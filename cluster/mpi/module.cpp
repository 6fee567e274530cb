#include "cluster/mpi/module.h"

#include <mpi.h>

#include <algorithm>
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
  bool wait_for(MPI_Request request, double seconds);
  template <typename Start>
  bool in_pieces(int64_t count, double seconds, const Start& start);

  /// MPI is asked for calls of one thread at a time, which every library can do.
  std::mutex mutex_;
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  MPI_Win window_ = MPI_WIN_NULL;
  int64_t* numbers_ = nullptr;  ///< those of rank 0 are the job's
};

MpiJob::MpiJob() {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &local_rank_);
  MPI_Comm_size(host, &local_size_);
  MPI_Comm_free(&host);
  const MPI_Aint bytes = rank_ == 0 ? 2 * sizeof(int64_t) : 0;
  MPI_Win_allocate(bytes, sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &numbers_, &window_);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
  if (rank_ == 0) {
    std::fill(numbers_, numbers_ + 2, 0);
    MPI_Win_sync(window_);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/// Waits without keeping a processor busy: others compute on it meanwhile.
bool MpiJob::wait_for(MPI_Request request, double seconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (auto pause = std::chrono::microseconds(20);; pause = std::min(2 * pause, kLongestPause)) {
    {
      const std::lock_guard lock(mutex_);
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
      MPI_Irecv(bytes + at, now, MPI_BYTE, from, 0, MPI_COMM_WORLD, request);
    } else {
      MPI_Isend(bytes + at, now, MPI_BYTE, 0, 0, MPI_COMM_WORLD, request);
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
  const std::lock_guard lock(mutex_);
  int64_t before = 0;
  MPI_Fetch_and_op(&value, &before, MPI_INT64_T, 0, number, MPI_SUM, window_);
  MPI_Win_flush(0, window_);
  return before;
}

void MpiJob::leave() {
  const std::lock_guard lock(mutex_);
  MPI_Win_unlock_all(window_);
  MPI_Win_free(&window_);
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
