/* peak.h: the limit that speeds are compared with. */
#ifndef CPL_GRAPH_PEAK_H
#define CPL_GRAPH_PEAK_H

#include "base/threads.h"
#include "kernel/kernel.h"

/* Operations a second, a multiply-add counted as two, that all threads of the pool reach together without touching
 * memory, each with a processor to itself: the best of several short tries, 50 ms in all. bf16: of the table's products
 * in bfloat16, which are no faster where the processor has none. 0: there was no memory to measure it. */
double cpl_peak(const cpl_kernels *kernels, cpl_pool *pool, int bf16);

#endif
