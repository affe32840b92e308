/* log.c: messages to a sink; without a sink they cost nothing. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

enum { MESSAGE_BYTES = 1024 };

/* One line whatever the arguments hold: a control character would let data draw on a terminal. */
static void send(const cpl_log *log, cpl_log_level level, const char *format, va_list list)
{
    char message[MESSAGE_BYTES];
    if (vsnprintf(message, sizeof message, format, list) < 0)
        return;
    for (char *c = message; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F)
            *c = ' ';
    log->sink(log->user, level, message);
}

void cpl_log_info(const cpl_log *log, const char *format, ...)
{
    if (!log || !log->sink)
        return;
    va_list list;
    va_start(list, format);
    send(log, CPL_LOG_INFO, format, list);
    va_end(list);
}

void cpl_log_warning(const cpl_log *log, const char *format, ...)
{
    if (!log || !log->sink)
        return;
    va_list list;
    va_start(list, format);
    send(log, CPL_LOG_WARNING, format, list);
    va_end(list);
}
