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

/// The answers of all processes in one exchange, by rank.
struct Team::Answers {
  std::vector<int64_t> kept;
  std::vector<int64_t> lengths;  ///< of what they bring; of failures −1 − that of their words
  std::vector<std::string> failures;
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

void Team::begin_units(int64_t count) {
  const std::lock_guard lock(units_mutex_);
  // Of the units before every process has asked once in vain.
  first_unit_ += units_ + (units_ > 0 ? size() : 0);
  units_ = count;
  units_given_ = count == 0;
}

std::optional<int64_t> Team::next_unit() {
  const std::lock_guard lock(units_mutex_);
  if (units_given_) return std::nullopt;
  const int64_t unit = (link_ ? link_->add(kUnits, 1) : next_.fetch_add(1)) - first_unit_;
  units_given_ = unit >= units_;
  return units_given_ ? std::nullopt : std::optional(unit);
}

/// Hears who is still well and what each brings; of those who are not, their words.
bool Team::gather(int64_t length, const std::string* failure, double seconds, Answers& answers) {
  const auto all = static_cast<size_t>(size());
  const int64_t mine = failure != nullptr ? -1 - std::ssize(*failure) : length;
  answers = {std::vector<int64_t>(all, kept_), std::vector<int64_t>(all, mine),
             std::vector<std::string>(all)};
  if (!link_) {
    if (failure != nullptr) answers.failures.front() = *failure;
    return true;
  }
  if (!link_->gather_numbers(kept_, answers.kept.data(), seconds) ||
      !link_->gather_numbers(mine, answers.lengths.data(), seconds)) {
    return false;
  }
  for (int from = 0; from < size(); ++from) {
    const int64_t said = answers.lengths[static_cast<size_t>(from)];
    if (said >= 0) continue;
    std::string& text = answers.failures[static_cast<size_t>(from)];
    if (from == rank()) text = *failure;
    text.resize(static_cast<size_t>(-1 - said));
    if (!link_->send(from, text.data(), std::ssize(text), seconds)) return false;
  }
  return true;
}

/// Those of all who are well. Throws TeamFailed where one is not.
Team::Answers Team::answers_to(int64_t length) {
  Answers answers;
  gather(length, nullptr, 0, answers);
  for (const int64_t said : answers.lengths) {
    if (said < 0) throw TeamFailed(judge(answers));
  }
  return answers;
}

/// One's own, and room for the others'.
std::vector<std::string> Team::texts_for(const std::string& mine, const Answers& answers) {
  std::vector<std::string> texts;
  for (int from = 0; from < size(); ++from) {
    const auto length = static_cast<size_t>(answers.lengths[static_cast<size_t>(from)]);
    texts.push_back(from == rank() ? mine : std::string(length, '\0'));
  }
  return texts;
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
    const auto code = static_cast<ErrorCode>(answers.failures[at].front());
    const bool cause =
        speaker < 0 || (failure.code == ErrorCode::interrupted && code != ErrorCode::interrupted);
    if (!cause) continue;
    speaker = from;
    failure.code = code;
    failure.message = answers.failures[at].substr(1);
  }
  failure.speaks = speaker == rank();
  return failure;
}

std::vector<std::string> Team::exchange(const std::string& mine) {
  std::vector<std::string> texts = texts_for(mine, answers_to(std::ssize(mine)));
  for (int from = 0; link_ && from < size(); ++from) {
    std::string& text = texts[static_cast<size_t>(from)];
    link_->send(from, text.data(), std::ssize(text), 0);
  }
  return texts;
}

std::vector<std::string> Team::collect(const std::string& mine) {
  const Answers answers = answers_to(std::ssize(mine));
  if (!is_first()) {
    std::string text = mine;
    link_->pass(rank(), text.data(), std::ssize(text), 0);
    return {};
  }
  std::vector<std::string> texts = texts_for(mine, answers);
  for (int from = 1; from < size(); ++from) {
    std::string& text = texts[static_cast<size_t>(from)];
    link_->pass(from, text.data(), std::ssize(text), 0);
  }
  return texts;
}

void Team::add_up(std::span<int64_t> numbers) {
  answers_to(std::ssize(numbers));
  if (link_) link_->add_up(numbers.data(), std::ssize(numbers), 0);
}

TeamFailure Team::fail(ErrorCode code, const std::string& message) {
  const std::string mine = std::string(1, static_cast<char>(code)) + message;
  if (link_) link_->add(kStop, 1);
  Answers answers;
  if (gather(0, &mine, kAnswerSeconds, answers)) return judge(answers);
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
