/* error.h: how a failure is stated and how context is added. Two macros, nothing else.
 *
 *   CPL_FAIL(err, CPL_USAGE, "line %d has %d fields, expected 2", line, fields);   states a cause, returns
 *   CPL_TRY(read_pairs(…, err), err, "cannot read '%s'", path);                    adds context, returns
 *
 * Sentences are lower case, without a full stop, what failed first, got and expected with numbers and
 * units, names in single quotes. A hint follows the cause after CPL_HINT:
 *   CPL_FAIL(err, CPL_USAGE, "unknown key '%s'" CPL_HINT "did you mean '%s'?", key, nearest);
 */
#ifndef CPL_BASE_ERROR_H
#define CPL_BASE_ERROR_H

#include "couplet.h"

#define CPL_HINT "\n"

/* Replaces what err holds by one cause. Text after '\n' becomes the hint. Returns status. err may be NULL. */
cpl_status cpl_error_set(cpl_error *err, cpl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds one line of context around what err holds; past six lines the innermost five are kept and the
 * last context replaced. Returns the status that err holds (`status` when err is NULL or empty). */
cpl_status cpl_error_context(cpl_error *err, cpl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What an errno value means, as the end of a sentence: "cannot open 'x': no such file or folder". */
const char *cpl_reason(int error);

#define CPL_FAIL(err, status, ...) return cpl_error_set((err), (status), __VA_ARGS__)

#define CPL_TRY(call, err, ...)                                                                    \
    do {                                                                                           \
        cpl_status cpl_try_status_ = (call);                                                       \
        if (cpl_try_status_ != CPL_OK)                                                             \
            return cpl_error_context((err), cpl_try_status_, __VA_ARGS__);                         \
    } while (0)

#endif
