#include "viewer/tiles/norm_cache.h"

#include "core/base/error.h"
#include "core/base/failure_text.h"
#include "core/products/kept_norms.h"

namespace attnscope {

NormCache::NormCache(LseCache cache, const TileBackend& backend, int64_t check_memory,
                     Reserve reserve, Found found, Failed failed)
    : cache_(std::move(cache)),
      backend_(backend),
      check_budget_(check_memory),
      reserve_(std::move(reserve)),
      found_(std::move(found)),
      failed_(std::move(failed)) {
  if (enabled()) thread_ = std::jthread([this](std::stop_token stop) { run(std::move(stop)); });
}

NormCache::~NormCache() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void NormCache::look_up(const Source& source) {
  const std::lock_guard lock(mutex_);
  requests_.push_back({source, {}, {}});
  changed_.notify_one();
}

void NormCache::keep(const Source& source, std::vector<RowNorm> norms, MemoryReservation memory) {
  const std::lock_guard lock(mutex_);
  requests_.push_back({source, std::move(memory), std::move(norms)});
  changed_.notify_one();
}

void NormCache::run(std::stop_token stop) {
  while (true) {
    Request request;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [&] { return !requests_.empty(); })) return;
      request = std::move(requests_.front());
      requests_.pop_front();
    }
    try {
      serve(request, stop);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::interrupted) return;
      failed_(error.what());
    } catch (const std::exception& error) {
      failed_(failure_text(error));
    }
  }
}

void NormCache::serve(Request& request, std::stop_token stop) {
  const Source& source = request.source;
  const NormSource head{source.problem, source.mask, source.id.batch, source.id.head};
  std::string& key = keys_[source.id];
  if (key.empty()) key = cache_.key(head, backend_.name_for(*source.problem), stop);
  if (!request.norms.empty()) {
    const auto problem = cache_.store(key, request.norms);
    if (problem) failed_("row sums could not be kept: " + *problem);
    return;
  }
  const int64_t rows = source.problem->num_queries();
  const MemoryReservation memory = reserve_(rows * static_cast<int64_t>(2 * sizeof(RowNorm)),
                                            "the row sums on their way from the disk");
  std::vector<RowNorm> norms(static_cast<size_t>(rows));
  if (!cache_.load(key, norms)) return;
  if (norms_agree(head, norms, backend_, check_budget_, stop)) {
    found_(source.id, std::move(norms));
  } else {
    failed_(std::string(kForeignNorms));
  }
}

}  // namespace attnscope
