/* op_line.h: a line of an op's `tests` read into attributes and input types. Used by op_harness.c alone. */
#ifndef CPL_TESTS_SUPPORT_OP_LINE_H
#define CPL_TESTS_SUPPORT_OP_LINE_H

#include "support/op_harness.h"

/* Sets h->attributes and h->in_type; types[i] is NULL for an input that the line leaves out. */
void cpl_line_types(cpl_harness *h, const cpl_type **types);

#endif
