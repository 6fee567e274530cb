#include "io/pictures/shader_scale.h"

namespace attnscope {

ShaderScale shader_scale(const ColourScale& scale, double factor) {
  return {scale.kind(), static_cast<float>(factor),
          static_cast<float>(scale.transformed(scale.range().low)),
          static_cast<float>(scale.transformed(scale.range().high)),
          static_cast<float>(scale.kind() == ScaleKind::symlog ? scale.linear_part() : 1)};
}

}  // namespace attnscope
