/* table.c: finds ops by name or number; the list itself is ops.def. */
#include <string.h>
#include "graph/op.h"

#define X(name) extern const cpl_op cpl_op_##name;
#include "ops/ops.def"
#undef X

static const cpl_op *const table[] = {
#define X(name) &cpl_op_##name,
#include "ops/ops.def"
#undef X
};

const cpl_op *cpl_op_at(size_t i)
{
    return i < sizeof table / sizeof table[0] ? table[i] : NULL;
}

const cpl_op *cpl_op_named(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}
