#include "viewer/tiles/texels/texel_reader.h"

#include <utility>

namespace attnscope {
namespace {

class JoinedTexels : public TexelReader {
 public:
  JoinedTexels(std::shared_ptr<const TexelReader> first, std::shared_ptr<const TexelReader> second)
      : first_(std::move(first)), second_(std::move(second)), calls_(first_->calls()) {
    calls_.insert(calls_.end(), second_->calls().begin(), second_->calls().end());
  }

  const std::vector<MapSource>& calls() const override { return calls_; }
  int64_t panel_rows(const HeadId& head) const override {
    const auto [reader, own] = of(head);
    return reader->panel_rows(own);
  }
  int64_t buffer_bytes(const HeadId& head) const override {
    const auto [reader, own] = of(head);
    return reader->buffer_bytes(own);
  }
  void add(const HeadId& head, IndexRange rows, IndexRange cols, int64_t side,
           std::span<TexelRow> texels) const override {
    const auto [reader, own] = of(head);
    reader->add(own, rows, cols, side, texels);
  }
  void entries(const HeadId& head, IndexRange rows, IndexRange cols,
               std::span<float> out) const override {
    const auto [reader, own] = of(head);
    reader->entries(own, rows, cols, out);
  }
  bool holds(const HeadId& head, IndexRange rows, IndexRange cols) const override {
    const auto [reader, own] = of(head);
    return reader->holds(own, rows, cols);
  }
  ProbedEntry probe(const HeadId& head, int64_t query, int64_t key) const override {
    const auto [reader, own] = of(head);
    return reader->probe(own, query, key);
  }

 private:
  struct Own {
    const TexelReader* reader;
    HeadId head;
  };
  Own of(const HeadId& head) const {
    const auto before = static_cast<int64_t>(first_->calls().size());
    if (head.call < before) return {first_.get(), head};
    HeadId own = head;
    own.call -= before;
    return {second_.get(), own};
  }

  const std::shared_ptr<const TexelReader> first_, second_;
  std::vector<MapSource> calls_;
};

}  // namespace

std::unique_ptr<TexelReader> join_texels(std::shared_ptr<const TexelReader> first,
                                         std::shared_ptr<const TexelReader> second) {
  return std::make_unique<JoinedTexels>(std::move(first), std::move(second));
}

}  // namespace attnscope
