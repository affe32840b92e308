/* scan.h: a file's bytes as lines; shared by reader.c and lines.c. */
#ifndef CPL_DATA_SCAN_H
#define CPL_DATA_SCAN_H

#include "data/data.h"

enum { CPL_MARK_BYTES = 3 };
#define CPL_MARK "\xEF\xBB\xBF" /* U+FEFF, the byte-order mark */

/* Refuses text that is not UTF-8: CPL_USAGE with how many lines, and for the first few the line, the byte's offset in
 * the line (from 0) and its value. UTF-16 is recognised by its mark. */
cpl_status cpl_scan_utf8(const char *name, const char *text, size_t length, cpl_error *err);

/* Cuts the next line off [*at, end): without its LF and a CR before that. Returns 0 at the end. */
int cpl_scan_line(char **at, char *end, char **line, size_t *length);
/* Lines of the text; the last needs no LF. */
int64_t cpl_scan_count(const char *text, size_t length);

/* Takes every byte-order mark out of the line, in place; returns how many there were. */
int64_t cpl_scan_unmark(char *line, size_t *length);
/* Nothing but white space, or nothing at all. */
int cpl_scan_blank(const char *text, size_t length);

#endif
