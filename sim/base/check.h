// CHECK(condition, message): for our own bugs only, never reachable from input. Prints and aborts.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(condition, message)                                                           \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      std::fprintf(stderr, "%s:%d: internal error: %s (%s)\n", __FILE__, __LINE__, message, \
                   #condition);                                                             \
      std::abort();                                                                         \
    }                                                                                       \
  } while (false)
