#include "viewer/panels/scene.h"

namespace attnscope {

std::string unit_name(ViewProduct product, ScoreFunction score) {
  switch (product) {
    case ViewProduct::logits:
      return is_signed(score) ? "weight" : "logit";
    case ViewProduct::lift:
      return "lift (weight \u00d7 keys)";
    case ViewProduct::weights:
      break;
  }
  return "weight";
}

}  // namespace attnscope
