/* limit.h: how much memory this process may still take. */
#ifndef CPL_TRAIN_LIMIT_H
#define CPL_TRAIN_LIMIT_H

#include <stdint.h>

/* The tightest of the limits on address space and data (setrlimit, ulimit -v and -d) and of the control groups that
 * the process is in. */
typedef struct cpl_memory_limit {
    const char *name; /* "the address space (ulimit -v)"; NULL: there is no limit */
    uint64_t limit;   /* bytes, as it was set */
    uint64_t room;    /* of them left; some is kept back for what no plan sees */
    int mapped;       /* 1: what is mapped counts, touched or not */
} cpl_memory_limit;

/* released: bytes that are mapped from files now and will be given back before more is taken. */
cpl_memory_limit cpl_memory_limit_now(uint64_t released);
/* The group part of it: groups has the form of /proc/self/cgroup, mount that of /sys/fs/cgroup (version 1 or 2).
 * Returns the room left under the tightest limit between the group and the root, UINT64_MAX: none; *limit is that
 * limit. */
uint64_t cpl_memory_group_room(const char *groups, const char *mount, uint64_t *limit);

#endif
