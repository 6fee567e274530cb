#include "viewer/tiles/norm_keeper.h"

#include "core/base/error.h"

namespace attnscope {

NormKeeper::NormKeeper(std::vector<std::filesystem::path> folders, std::string backend,
                       Reserve reserve, Found found, Failed failed)
    : cache_(std::move(folders)),
      backend_(std::move(backend)),
      reserve_(std::move(reserve)),
      found_(std::move(found)),
      failed_(std::move(failed)) {
  if (enabled()) thread_ = std::jthread([this](std::stop_token stop) { run(std::move(stop)); });
}

NormKeeper::~NormKeeper() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void NormKeeper::look_up(const Source& source) {
  const std::lock_guard lock(mutex_);
  errands_.push_back({source, {}, {}});
  changed_.notify_one();
}

void NormKeeper::keep(const Source& source, std::vector<RowNorm> norms, MemoryReservation memory) {
  const std::lock_guard lock(mutex_);
  errands_.push_back({source, std::move(memory), std::move(norms)});
  changed_.notify_one();
}

void NormKeeper::run(std::stop_token stop) {
  while (true) {
    Errand errand;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [&] { return !errands_.empty(); })) return;
      errand = std::move(errands_.front());
      errands_.pop_front();
    }
    try {
      do_errand(errand, stop);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::interrupted) return;
      failed_(error.what());
    } catch (const std::exception& error) {
      failed_(error.what());
    }
  }
}

void NormKeeper::do_errand(Errand& errand, std::stop_token stop) {
  const Source& source = errand.source;
  std::string& key = keys_[source.id];
  if (key.empty()) {
    key =
        cache_.key({source.problem, source.mask, source.id.batch, source.id.head}, backend_, stop);
  }
  if (!errand.norms.empty()) {
    const auto problem = cache_.store(key, errand.norms);
    if (problem) failed_("row sums could not be kept: " + *problem);
    return;
  }
  const int64_t rows = source.problem->num_queries();
  const MemoryReservation memory = reserve_(rows * static_cast<int64_t>(2 * sizeof(RowNorm)),
                                            "the row sums on their way from the disk");
  std::vector<RowNorm> norms(static_cast<size_t>(rows));
  if (cache_.load(key, norms)) found_(source.id, std::move(norms));
}

}  // namespace attnscope
