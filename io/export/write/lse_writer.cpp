#include "io/export/write/lse_writer.h"

#include <algorithm>

#include "io/files/checksum.h"

namespace attnscope {
namespace {

constexpr auto kBytes = static_cast<int64_t>(sizeof(float));

}  // namespace

std::vector<float> LseWriter::write(int64_t head, const LseTarget& target, int64_t first_row,
                                    std::span<const RowNorm> norms) {
  std::vector<float> values(norms.size());
  for (size_t i = 0; i < norms.size(); ++i) values[i] = static_cast<float>(norms[i].lse());
  small_(std::as_bytes(std::span(values)), target.base + first_row * kBytes);
  if (!apart_) add(head, target, first_row, values);
  return values;
}

void LseWriter::restore(int64_t head, const LseTarget& target, int64_t first_row, int64_t rows) {
  if (apart_) return;
  std::vector<float> values(static_cast<size_t>(rows));
  file_.read_at(std::as_writable_bytes(std::span(values)), target.base + first_row * kBytes);
  add(head, target, first_row, values);
}

void LseWriter::add(int64_t head, const LseTarget& target, int64_t first_row,
                    std::span<const float> values) {
  std::vector<float> complete;
  {
    const std::lock_guard lock(mutex_);
    auto at = pending_.find(head);
    if (at == pending_.end()) {
      // Made whole first: where memory runs out nobody finds half of it.
      Pending fresh{std::vector<float>(static_cast<size_t>(target.rows)), target.rows};
      at = pending_.emplace(head, std::move(fresh)).first;
    }
    Pending& pending = at->second;
    std::copy(values.begin(), values.end(), pending.values.begin() + first_row);
    pending.missing -= static_cast<int64_t>(values.size());
    if (pending.missing > 0) return;
    complete = std::move(pending.values);
    pending_.erase(at);
  }
  put_checksum(target, complete);
}

void LseWriter::write_checksum(const LseTarget& target) {
  std::vector<float> values(static_cast<size_t>(target.rows));
  file_.read_at(std::as_writable_bytes(std::span(values)), target.base);
  put_checksum(target, values);
}

void LseWriter::put_checksum(const LseTarget& target, std::span<const float> values) {
  const uint32_t sum = checksum(std::as_bytes(values));
  file_.write_at(std::as_bytes(std::span(&sum, 1)), target.checksum_offset);
}

}  // namespace attnscope
