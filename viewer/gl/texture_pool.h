#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "viewer/gl/gl_name.h"

namespace attnscope::gl {

/// One square of a TexturePool.
struct PoolSlot {
  int page = 0;   ///< which texture array
  int layer = 0;  ///< which of its layers
  friend bool operator==(const PoolSlot&, const PoolSlot&) = default;
};

/// Squares of kSide² texels with two half floats each, in texture arrays of kLayers layers that are
/// made when they are needed and kept. Who owns which slot, and which is given up first, is the
/// caller's business. Only on the context's thread.
class TexturePool {
 public:
  static constexpr int kSide = 256;
  static constexpr int kLayers = 64;
  static constexpr int64_t kSlotBytes = int64_t{kSide} * kSide * 4;

  /// At most `bytes` of textures, at least one slot.
  explicit TexturePool(int64_t bytes);

  /// A slot that is free, or nothing when all are taken. Throws Error(resource) when the driver has
  /// no memory for a further page.
  std::optional<PoolSlot> take();
  void give_back(PoolSlot slot) { free_.push_back(slot); }
  /// Fills the first `rows` × `cols` texels of a slot: [rows, cols] pairs of half floats.
  void upload(PoolSlot slot, int rows, int cols, std::span<const uint16_t> pairs);
  /// OpenGL's name of the slot's texture, for those who fill its layer by other means; they say so.
  GLuint name(PoolSlot slot) const { return pages_[static_cast<size_t>(slot.page)].get(); }
  void count_upload() { ++uploads_; }
  /// The first `rows` × `cols` texels of a slot, [rows, cols] pairs of half floats.
  std::vector<uint16_t> read(PoolSlot slot, int rows, int cols) const;
  /// Makes a page the active texture unit's 2-D array.
  void bind(int page) const {
    glBindTexture(GL_TEXTURE_2D_ARRAY, pages_[static_cast<size_t>(page)].get());
  }

  int64_t slots() const { return slots_; }
  /// Of textures that exist by now.
  int64_t bytes() const { return made_ * kSlotBytes; }
  int64_t uploads() const { return uploads_; }

 private:
  void add_page();

  int64_t slots_ = 1;
  int64_t made_ = 0;
  int64_t uploads_ = 0;
  std::vector<TextureName> pages_;
  std::vector<PoolSlot> free_;
};

}  // namespace attnscope::gl
