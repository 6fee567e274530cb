// The agreement of several processes, here threads on a job of their own.
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "cluster/team.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

/// Stands in for MPI: a job whose processes are threads.
class FakeJob {
 public:
  explicit FakeJob(int size) : size_(size), numbers_(2, 0) {}

  int size() const { return size_; }
  /// Waits for all; each gets what all brought.
  std::vector<std::string> meet(int rank, const std::string& mine) {
    std::unique_lock lock(mutex_);
    const int round = rounds_[rank]++;
    auto& words = words_[round];
    words.resize(static_cast<size_t>(size_));
    words[static_cast<size_t>(rank)] = mine;
    ++came_[round];
    changed_.notify_all();
    changed_.wait(lock, [&] { return came_[round] == size_; });
    return words;
  }
  int64_t add(int number, int64_t value) {
    const std::lock_guard lock(mutex_);
    const int64_t before = numbers_[static_cast<size_t>(number)];
    numbers_[static_cast<size_t>(number)] += value;
    return before;
  }

  /// A text for the first process.
  void post(int from, const std::string& text) {
    const std::lock_guard lock(mutex_);
    posted_[from].push_back(text);
    changed_.notify_all();
  }
  std::string take(int from) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !posted_[from].empty(); });
    const std::string text = posted_[from].front();
    posted_[from].erase(posted_[from].begin());
    return text;
  }

 private:
  const int size_;
  std::map<int, std::vector<std::string>> posted_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, int> rounds_, came_;
  std::map<int, std::vector<std::string>> words_;
  std::vector<int64_t> numbers_;
};

class FakeLink final : public TeamLink {
 public:
  FakeLink(FakeJob& job, int rank) : job_(job), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return job_.size(); }
  int local_rank() const override { return rank_; }
  int local_size() const override { return job_.size(); }
  bool gather_numbers(int64_t mine, int64_t* all, double) override {
    for (const std::string& word : job_.meet(rank_, std::to_string(mine)))
      *all++ = std::stoll(word);
    return true;
  }
  bool send(int from, char* bytes, int64_t count, double) override {
    const std::string mine = from == rank_ ? std::string(bytes, static_cast<size_t>(count)) : "";
    const auto words = job_.meet(rank_, mine);
    std::memcpy(bytes, words[static_cast<size_t>(from)].data(), static_cast<size_t>(count));
    return true;
  }
  bool pass(int from, char* bytes, int64_t count, double) override {
    if (rank_ != 0) {
      job_.post(from, std::string(bytes, static_cast<size_t>(count)));
    } else {
      const std::string text = job_.take(from);
      REQUIRE(std::ssize(text) == count);
      std::memcpy(bytes, text.data(), text.size());
    }
    return true;
  }
  bool add_up(int64_t* numbers, int64_t count, double) override {
    const std::string mine(reinterpret_cast<const char*>(numbers), static_cast<size_t>(count) * 8);
    std::fill(numbers, numbers + count, 0);
    for (const std::string& words : job_.meet(rank_, mine)) {
      for (int64_t i = 0; i < count; ++i) {
        int64_t number = 0;
        std::memcpy(&number, words.data() + i * 8, 8);
        numbers[i] += number;
      }
    }
    return true;
  }
  int64_t add(int number, int64_t value) override { return job_.add(number, value); }
  void leave() override { job_.meet(rank_, ""); }
  void stop_all(int) override {}

 private:
  FakeJob& job_;
  const int rank_;
};

/// Runs `work` as every process of a job.
void in_team(int size, const std::function<void(Team&, std::stop_source)>& work) {
  FakeJob job(size);
  std::vector<std::jthread> processes;
  for (int rank = 0; rank < size; ++rank) {
    processes.emplace_back([&, rank] {
      const std::stop_source stop;
      Team team(std::make_unique<FakeLink>(job, rank), stop);
      work(team, stop);
      team.leave();
    });
  }
}

}  // namespace

TEST_CASE("everybody hears what everybody says, and gets units of their own") {
  std::mutex mutex;
  std::set<int64_t> units;
  std::vector<std::vector<std::string>> heard;
  in_team(3, [&](Team& team, const std::stop_source&) {
    const auto words = team.exchange(std::string(static_cast<size_t>(team.rank()), 'x') + "|");
    const auto nothing = team.exchange("");
    std::vector<int64_t> mine;
    team.begin_units(300);
    while (const auto unit = team.next_unit()) mine.push_back(*unit);
    CHECK(!team.next_unit());
    const std::lock_guard lock(mutex);
    heard.push_back(words);
    heard.push_back(nothing);
    units.insert(mine.begin(), mine.end());
  });
  REQUIRE(heard.size() == 6);
  for (const auto& words : heard) {
    const bool known = words == std::vector<std::string>{"|", "x|", "xx|"} ||
                       words == std::vector<std::string>{"", "", ""};
    CHECK(known);
  }
  CHECK(units.size() == 300);
  CHECK(*units.rbegin() == 299);
  Team alone;
  CHECK(alone.exchange("me") == std::vector<std::string>{"me"});
  CHECK(alone.collect("me") == std::vector<std::string>{"me"});
  CHECK(!alone.next_unit());
  for (int round = 0; round < 2; ++round) {
    alone.begin_units(2);
    CHECK(alone.next_unit() == 0);
    CHECK(alone.next_unit() == 1);
    CHECK(!alone.next_unit());
  }
}

TEST_CASE("units begin anew after all have met, and sums are everybody's") {
  std::mutex mutex;
  std::map<int64_t, int64_t> given;
  std::vector<std::string> collected;
  in_team(3, [&](Team& team, const std::stop_source&) {
    for (const int64_t count : {7, 0, 1, 30}) {
      team.begin_units(count);
      std::vector<int64_t> did(1);
      while (const auto unit = team.next_unit()) {
        const std::lock_guard lock(mutex);
        ++given[*unit];
        ++did[0];
      }
      team.add_up(did);
      CHECK(did[0] == count);
    }
    const auto texts = team.collect(std::string(static_cast<size_t>(team.rank()) * 3, 'x'));
    CHECK(texts.empty() == !team.is_first());
    const std::lock_guard lock(mutex);
    collected.insert(collected.end(), texts.begin(), texts.end());
  });
  CHECK(collected == std::vector<std::string>{"", "xxx", "xxxxxx"});
  int64_t all = 0;
  for (const auto& [unit, times] : given) all += times;
  CHECK(all == 38);
  CHECK(given[0] == 3);
  CHECK(given[6] == 2);
  CHECK(given[29] == 1);
}

TEST_CASE("where one fails all hear of it, and one says it") {
  std::mutex mutex;
  int speakers = 0, failed = 0;
  in_team(4, [&](Team& team, const std::stop_source& stop) {
    team.exchange("");
    team.keep(team.rank() + 1);
    TeamFailure failure;
    if (team.rank() == 2) {
      failure = team.fail(ErrorCode::resource, "the disk is full");
    } else if (team.rank() == 1) {
      // One that was asked to stop, and says so.
      while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      failure = team.fail(ErrorCode::interrupted, "interrupted");
    } else {
      try {
        team.exchange("all is well");
      } catch (const TeamFailed& known) {
        failure = known.failure();
      }
    }
    const std::lock_guard lock(mutex);
    ++failed;
    speakers += failure.speaks ? 1 : 0;
    CHECK(failure.speaks == (team.rank() == 2));
    CHECK(failure.code == ErrorCode::resource);
    CHECK(failure.message == "the disk is full");
    CHECK(failure.kept == 10);
  });
  CHECK(failed == 4);
  CHECK(speakers == 1);
}

TEST_CASE("a stop of one is a stop of all") {
  std::mutex mutex;
  int stopped = 0;
  in_team(3, [&](Team& team, std::stop_source stop) {
    if (team.rank() == 1) stop.request_stop();
    while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const TeamFailure failure = team.fail(ErrorCode::interrupted, "interrupted");
    const std::lock_guard lock(mutex);
    ++stopped;
    CHECK(failure.code == ErrorCode::interrupted);
    CHECK(failure.speaks == (team.rank() == 0));
  });
  CHECK(stopped == 3);
}
