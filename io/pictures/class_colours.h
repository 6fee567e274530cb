#pragma once

#include "core/reduce/head_fields.h"
#include "io/pictures/colormap.h"

namespace attnscope {

/// The colour of a head's class in charts and pages, one that people with any sight of colours tell
/// from the others (Okabe and Ito, "Color Universal Design", 2008).
constexpr Rgb class_colour(HeadClass which) {
  switch (which) {
    case HeadClass::sink:
      return {0xd5, 0x5e, 0x00};
    case HeadClass::text:
      return {0xe6, 0x9f, 0x00};
    case HeadClass::temporal:
      return {0x00, 0x72, 0xb2};
    case HeadClass::spatial:
      return {0x56, 0xb4, 0xe9};
    case HeadClass::local:
      return {0x00, 0x9e, 0x73};
    case HeadClass::global:
      return {0xcc, 0x79, 0xa7};
    case HeadClass::undefined:
      break;
  }
  return {0x99, 0x99, 0x99};
}

}  // namespace attnscope
