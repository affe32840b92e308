/* log.h: what the library wants to tell a person. Nothing in src/ prints: messages go to a sink. */
#ifndef CPL_BASE_LOG_H
#define CPL_BASE_LOG_H

typedef enum cpl_log_level { CPL_LOG_INFO, CPL_LOG_WARNING } cpl_log_level;

/* message: one line, lower case, no full stop. */
typedef void (*cpl_log_sink)(void *user, cpl_log_level level, const char *message);

typedef struct cpl_log {
    cpl_log_sink sink; /* NULL: silent */
    void *user;
} cpl_log;

void cpl_log_info(const cpl_log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cpl_log_warning(const cpl_log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
