#pragma once

namespace attnscope::test {

/// True where a sanitizer watches this build, which makes arithmetic ten times dearer.
constexpr bool sanitized() {
#if defined(ATTNSCOPE_SANITIZED)
  return true;
#else
  return false;
#endif
}

}  // namespace attnscope::test
