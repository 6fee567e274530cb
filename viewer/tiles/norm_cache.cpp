#include "viewer/tiles/norm_cache.h"

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
  if (!enabled()) return;
  thread_.emplace(
      [this](Request& request, std::stop_token stop) { serve(request, std::move(stop)); },
      [this](const Request&, const std::string& problem) { failed_(problem); });
}

void NormCache::look_up(const Source& source) {
  if (thread_) thread_->add({source, {}, {}});
}

void NormCache::keep(const Source& source, std::vector<RowNorm> norms, MemoryReservation memory) {
  if (thread_) thread_->add({source, std::move(memory), std::move(norms)});
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
