/* pick.c: which table this processor gets. The only file that asks what the processor can do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "kernel/kernel.h"
#include "kernel/tables.h"

enum { TABLES_MOST = 5, NAMES_ROOM = 80 };

/* Fastest first: the first entry is what a run without COUPLET_ISA uses. */
int cpl_kernels_all(const cpl_kernels **tables, int most)
{
    const cpl_kernels *have[TABLES_MOST];
    int count = 0;

#ifndef CPL_DOUBLE
#ifdef CPL_HAVE_X86
    __builtin_cpu_init();
    int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                 __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("fma");
#ifdef CPL_HAVE_X86_BF16
    if (avx512 && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni"))
        have[count++] = &cpl_kernels_avx512bf16;
#endif
    if (avx512)
        have[count++] = &cpl_kernels_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        have[count++] = &cpl_kernels_avx2;
#endif
    have[count++] = &cpl_kernels_generic;
#endif
    have[count++] = &cpl_kernels_reference;
    if (count > most)
        count = most;
    for (int i = 0; i < count; i++)
        tables[i] = have[i];
    return count;
}

const cpl_kernels *cpl_kernels_named(const char *name)
{
    const cpl_kernels *have[TABLES_MOST];
    int count = cpl_kernels_all(have, TABLES_MOST);

    for (int i = 0; i < count; i++) {
        if (strcmp(have[i]->name, name) == 0)
            return have[i];
    }
    return NULL;
}

/* "avx2, generic, reference": what an unknown name could have been. */
static void list_names(char *names, size_t room)
{
    const cpl_kernels *have[TABLES_MOST];
    int count = cpl_kernels_all(have, TABLES_MOST);
    size_t used = 0;

    for (int i = 0; i < count && used < room; i++) {
        int wrote = snprintf(names + used, room - used, "%s%s", i > 0 ? ", " : "", have[i]->name);

        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

/* Names that Couplet knows on some machine or build, so that the error can tell "lacks" from "unknown". */
static int known_name(const char *name)
{
    static const char *const known[] = {"reference", "generic", "avx2", "avx512", "avx512bf16"};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i], name) == 0)
            return 1;
    }
    return 0;
}

cpl_status cpl_kernels_pick(const cpl_kernels **table, cpl_error *err)
{
    const char *name = sizeof(real) == sizeof(float) ? getenv("COUPLET_ISA") : NULL; /* double has one table alone */
    char names[NAMES_ROOM];

    if (name == NULL || name[0] == '\0') {
        cpl_kernels_all(table, 1);
        return CPL_OK;
    }
    if (strcmp(name, "ref") == 0)
        name = "reference";
    *table = cpl_kernels_named(name);
    if (*table != NULL)
        return CPL_OK;
    list_names(names, sizeof names);
    if (known_name(name))
        CPL_FAIL(err, CPL_USAGE, "COUPLET_ISA: this processor or build has no '%s' instructions, only %s", name, names);
    CPL_FAIL(err, CPL_USAGE, "COUPLET_ISA: unknown instruction set '%s', expected one of %s", name, names);
}
