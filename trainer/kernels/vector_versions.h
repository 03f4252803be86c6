#pragma once

// Loops over plain arrays, vectorised for what the processor of the day has:
// one source, compiled once for each instruction set named and once for any,
// of which the loader chooses.

// Sanitizers run before the loader can choose between versions.
#if defined(__x86_64__) && !defined(TRAINFARE_SANITIZED)
#define TRAINFARE_VECTOR_VERSIONS(...) \
  __attribute__((target_clones(__VA_ARGS__, "default")))
#else
#define TRAINFARE_VECTOR_VERSIONS(...)
#endif

// The body of a loop must stand in each version of it.
#define TRAINFARE_INLINE __attribute__((always_inline)) inline
