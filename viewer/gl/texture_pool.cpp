#include "viewer/gl/texture_pool.h"

#include <algorithm>

namespace attnscope::gl {

TexturePool::TexturePool(int64_t bytes) : slots_(std::max<int64_t>(1, bytes / kSlotBytes)) {}

void TexturePool::add_page() {
  const int layers = static_cast<int>(std::min<int64_t>(kLayers, slots_ - made_));
  GLuint name = 0;
  glGenTextures(1, &name);
  TextureName page(name);
  glBindTexture(GL_TEXTURE_2D_ARRAY, name);
  glTexParameteri(GL_TEXTURE_2D_ARRAY, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D_ARRAY, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D_ARRAY, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
  glTexParameteri(GL_TEXTURE_2D_ARRAY, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
  glTexImage3D(GL_TEXTURE_2D_ARRAY, 0, GL_RG16F, kSide, kSide, layers, 0, GL_RG, GL_HALF_FLOAT,
               nullptr);
  check("texture page");
  const int number = static_cast<int>(pages_.size());
  pages_.push_back(std::move(page));
  made_ += layers;
  for (int layer = layers; layer-- > 0;) free_.push_back({number, layer});
}

std::optional<PoolSlot> TexturePool::take() {
  if (free_.empty() && made_ < slots_) add_page();
  if (free_.empty()) return std::nullopt;
  const PoolSlot slot = free_.back();
  free_.pop_back();
  return slot;
}

void TexturePool::upload(PoolSlot slot, int rows, int cols, std::span<const uint16_t> pairs) {
  bind(slot.page);
  glPixelStorei(GL_UNPACK_ALIGNMENT, 4);
  glTexSubImage3D(GL_TEXTURE_2D_ARRAY, 0, 0, 0, slot.layer, cols, rows, 1, GL_RG, GL_HALF_FLOAT,
                  pairs.data());
  check("tile upload");
  ++uploads_;
}

std::vector<uint16_t> TexturePool::read(PoolSlot slot, int rows, int cols) const {
  GLuint name = 0;
  glGenFramebuffers(1, &name);
  const FramebufferName framebuffer(name);
  glBindFramebuffer(GL_READ_FRAMEBUFFER, name);
  glFramebufferTextureLayer(GL_READ_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, this->name(slot), 0,
                            slot.layer);
  std::vector<uint16_t> pairs(static_cast<size_t>(rows) * static_cast<size_t>(cols) * 2);
  glPixelStorei(GL_PACK_ALIGNMENT, 4);
  glReadPixels(0, 0, cols, rows, GL_RG, GL_HALF_FLOAT, pairs.data());
  glBindFramebuffer(GL_READ_FRAMEBUFFER, 0);
  check("reading a tile back");
  return pairs;
}

}  // namespace attnscope::gl
