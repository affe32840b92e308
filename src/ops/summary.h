/* summary.h: what the print ops say about a tensor: its name, its shape with the run's sizes, and its numbers. */
#ifndef CPL_OPS_SUMMARY_H
#define CPL_OPS_SUMMARY_H

#include "graph/op.h"

/* Sends one line about r->in[0] to r->log. */
void cpl_summary_tell(const cpl_run_context *r);

#endif
