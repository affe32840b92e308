/* clock.h: the clock by which durations are measured. */
#ifndef CPL_BASE_CLOCK_H
#define CPL_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some moment before the program began; never goes back. */
static inline int64_t cpl_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
