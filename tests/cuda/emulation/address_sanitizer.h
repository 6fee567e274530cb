#pragma once

/// ATTNSCOPE_EMULATION_ASAN: whether AddressSanitizer watches, as GCC and Clang each tell.
#if defined(__SANITIZE_ADDRESS__)
#define ATTNSCOPE_EMULATION_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ATTNSCOPE_EMULATION_ASAN 1
#endif
#endif
#if !defined(ATTNSCOPE_EMULATION_ASAN)
#define ATTNSCOPE_EMULATION_ASAN 0
#endif

#if ATTNSCOPE_EMULATION_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define ASAN_POISON_MEMORY_REGION(begin, size) ((void)(begin), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(begin, size) ((void)(begin), (void)(size))
#endif
