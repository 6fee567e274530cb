#include "cluster/team.h"

#include <chrono>
#include <cstdlib>

namespace attnscope {
namespace {

/// The job's numbers: how many units were given, and whether all are to stop.
constexpr int kUnits = 0;
constexpr int kStop = 1;
/// A process that failed waits so long for the others, who have been asked to stop: whoever does
/// not answer by then is gone, and the launcher has not noticed.
constexpr double kAnswerSeconds = 60;
/// Between two looks at what the others want. On the first process these looks are also what lets
/// MPI serve the others' requests where the network does not do it by itself.
constexpr std::chrono::milliseconds kWatch{50};
constexpr std::chrono::milliseconds kServe{5};

}  // namespace

/// What all processes said in one exchange, by rank.
struct Team::Answers {
  std::vector<int64_t> kept;
  std::vector<int64_t> lengths;  ///< of the texts; of failures −1 − that
  std::vector<std::string> texts;
};

Team::Team(std::unique_ptr<TeamLink> link, std::stop_source stop)
    : link_(std::move(link)),
      stop_(std::move(stop)),
      watcher_([this](const std::stop_token& end) { watch(end); }) {}

Team::~Team() {
  if (watcher_.joinable()) {
    watcher_.request_stop();
    watcher_.join();
  }
}

void Team::watch(const std::stop_token& end) {
  bool told = false;
  while (!end.stop_requested()) {
    if (stop_.stop_requested() && !told) {
      link_->add(kStop, 1);
      told = true;
    } else if (link_->add(kStop, 0) > 0) {
      told = true;
      stop_.request_stop();
    }
    std::this_thread::sleep_for(is_first() ? kServe : kWatch);
  }
}

int64_t Team::next() { return link_ ? link_->add(kUnits, 1) : next_.fetch_add(1); }

bool Team::gather(const std::string& mine, bool failed, double seconds, Answers& answers) {
  const auto all = static_cast<size_t>(size());
  const auto length = static_cast<int64_t>(mine.size());
  answers = {std::vector<int64_t>(all), std::vector<int64_t>(all), std::vector<std::string>(all)};
  if (!link_) {
    answers = {{kept_}, {failed ? -1 - length : length}, {mine}};
    return true;
  }
  if (!link_->gather_numbers(kept_, answers.kept.data(), seconds) ||
      !link_->gather_numbers(failed ? -1 - length : length, answers.lengths.data(), seconds)) {
    return false;
  }
  for (int from = 0; from < size(); ++from) {
    const int64_t said = answers.lengths[static_cast<size_t>(from)];
    std::string& text = answers.texts[static_cast<size_t>(from)];
    if (from == rank()) text = mine;
    text.resize(static_cast<size_t>(said < 0 ? -1 - said : said));
    if (!link_->send(from, text.data(), static_cast<int64_t>(text.size()), seconds)) return false;
  }
  return true;
}

/// The first failure that is not but a consequence of others: processes that were asked to stop say
/// that they were interrupted.
TeamFailure Team::judge(const Answers& answers) const {
  TeamFailure failure;
  int speaker = -1;
  for (int from = 0; from < size(); ++from) {
    const auto at = static_cast<size_t>(from);
    failure.kept += answers.kept[at];
    if (answers.lengths[at] >= 0) continue;
    const auto code = static_cast<ErrorCode>(answers.texts[at].front());
    const bool cause =
        speaker < 0 || (failure.code == ErrorCode::interrupted && code != ErrorCode::interrupted);
    if (!cause) continue;
    speaker = from;
    failure.code = code;
    failure.message = answers.texts[at].substr(1);
  }
  failure.speaks = speaker == rank();
  return failure;
}

std::vector<std::string> Team::exchange(const std::string& mine) {
  Answers answers;
  gather(mine, false, 0, answers);
  for (const int64_t length : answers.lengths) {
    if (length < 0) throw TeamFailed(judge(answers));
  }
  return std::move(answers.texts);
}

TeamFailure Team::fail(ErrorCode code, const std::string& message) {
  const std::string mine = std::string(1, static_cast<char>(code)) + message;
  if (link_) link_->add(kStop, 1);
  Answers answers;
  if (gather(mine, true, kAnswerSeconds, answers)) return judge(answers);
  // Nobody is left to agree with: it is said here, and the job ends.
  return {true, code, message, kept_, true};
}

void Team::leave() {
  if (!link_) return;
  watcher_.request_stop();
  watcher_.join();
  link_->leave();
  link_.reset();
}

}  // namespace attnscope
