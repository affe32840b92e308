/* tables.h: the tables that pick.c chooses from. Which of them exist is decided by the build:
 * reference always; generic unless CPL_DOUBLE; avx2 and avx512 where CPL_HAVE_X86 is defined, avx512bf16 where
 * CPL_HAVE_X86_BF16 is. */
#ifndef CPL_KERNEL_TABLES_H
#define CPL_KERNEL_TABLES_H

#include "kernel/kernel.h"

extern const cpl_kernels cpl_kernels_reference;
#ifndef CPL_DOUBLE
extern const cpl_kernels cpl_kernels_generic;
#ifdef CPL_HAVE_X86
extern const cpl_kernels cpl_kernels_avx2;
extern const cpl_kernels cpl_kernels_avx512;
#ifdef CPL_HAVE_X86_BF16
extern const cpl_kernels cpl_kernels_avx512bf16;
#endif
#endif
#endif

#endif
