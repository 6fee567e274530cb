#include "core/tensor/row_source.h"

#include <vector>

namespace attnscope {
namespace {

class StoredRows : public RowSource {
 public:
  StoredRows(const HeadTensor& tensor, int64_t batch, int64_t head)
      : tensor_(tensor), batch_(batch), head_(head) {}
  int64_t tokens() const override { return tensor_.tokens(); }
  int64_t width() const override { return tensor_.width(); }
  void read(IndexRange rows, float* out) const override {
    std::vector<std::byte> raw(static_cast<size_t>(rows.size() * tensor_.row_bytes()));
    tensor_.read_rows(batch_, head_, rows, raw.data());
    to_floats(tensor_.dtype(), raw.data(), rows.size() * width(), out);
  }

 private:
  HeadTensor tensor_;
  int64_t batch_, head_;
};

class ReshapedRows : public RowSource {
 public:
  ReshapedRows(const HeadTensor& tensor, int64_t batch, int64_t head)
      : tensor_(tensor), batch_(batch), head_(head) {}
  int64_t tokens() const override { return tensor_.tokens(); }
  int64_t width() const override { return tensor_.width(); }
  void read(IndexRange rows, float* out) const override {
    const bool heads_first = tensor_.layout() == Layout::bhsd || tensor_.layout() == Layout::hsd;
    std::vector<std::byte> raw(static_cast<size_t>(tensor_.row_bytes()));
    for (int64_t token = rows.begin; token < rows.end; ++token, out += width()) {
      // Where the row stands in memory, and what the shape calls that place.
      const int64_t place =
          heads_first ? token * tensor_.heads() + head_ : head_ * tensor_.tokens() + token;
      const int64_t inner = heads_first ? tensor_.tokens() : tensor_.heads();
      const int64_t outer_index = place / inner;
      const int64_t inner_index = place % inner;
      const int64_t stored_head = heads_first ? outer_index : inner_index;
      const int64_t stored_token = heads_first ? inner_index : outer_index;
      tensor_.read_rows(batch_, stored_head, {stored_token, stored_token + 1}, raw.data());
      to_floats(tensor_.dtype(), raw.data(), width(), out);
    }
  }

 private:
  HeadTensor tensor_;
  int64_t batch_, head_;
};

class ReorderedRows : public RowSource {
 public:
  ReorderedRows(RowSourcePtr rows, std::function<int64_t(int64_t)> order)
      : rows_(std::move(rows)), order_(std::move(order)) {}
  int64_t tokens() const override { return rows_->tokens(); }
  int64_t width() const override { return rows_->width(); }
  void read(IndexRange rows, float* out) const override {
    for (int64_t token = rows.begin; token < rows.end; ++token, out += width()) {
      const int64_t from = order_(token);
      rows_->read({from, from + 1}, out);
    }
  }

 private:
  RowSourcePtr rows_;
  std::function<int64_t(int64_t)> order_;
};

class ChangedRows : public RowSource {
 public:
  ChangedRows(RowSourcePtr rows, std::function<void(int64_t, float*)> change)
      : rows_(std::move(rows)), change_(std::move(change)) {}
  int64_t tokens() const override { return rows_->tokens(); }
  int64_t width() const override { return rows_->width(); }
  void read(IndexRange rows, float* out) const override {
    rows_->read(rows, out);
    for (int64_t token = rows.begin; token < rows.end; ++token, out += width()) {
      change_(token, out);
    }
  }

 private:
  RowSourcePtr rows_;
  std::function<void(int64_t, float*)> change_;
};

}  // namespace

RowSourcePtr stored_rows(const HeadTensor& tensor, int64_t batch, int64_t head) {
  return std::make_shared<StoredRows>(tensor, batch, head);
}

RowSourcePtr reshaped_rows(const HeadTensor& tensor, int64_t batch, int64_t head) {
  return std::make_shared<ReshapedRows>(tensor, batch, head);
}

RowSourcePtr reordered_rows(RowSourcePtr rows, std::function<int64_t(int64_t)> order) {
  return std::make_shared<ReorderedRows>(std::move(rows), std::move(order));
}

RowSourcePtr changed_rows(RowSourcePtr rows, std::function<void(int64_t, float*)> change) {
  return std::make_shared<ChangedRows>(std::move(rows), std::move(change));
}

}  // namespace attnscope
