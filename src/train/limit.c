/* limit.c: the memory limits of the process. Each is read as "limit less what is in use now", so that a plan only needs
 * to know what it will take from here on. */
#include "train/limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PATH = 1200 };

/* Above this a limit is a way to write "none" (version 1 of the groups writes a number near 2^63). */
static const uint64_t no_limit = (uint64_t)1 << 60;
/* Kept back: the heap of the C library grows in steps, page tables and stacks count too. */
static const uint64_t slack = 4u << 20;

/* ---- control groups ---- */

/* A number from a file of a group; no_limit for "max" and for a file that is not there. */
static uint64_t read_number(const char *folder, const char *name)
{
    char path[PATH + 80];
    uint64_t value = no_limit;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return no_limit;
    if (fscanf(file, "%20" SCNu64, &value) != 1)
        value = no_limit;
    fclose(file);
    return value;
}

/* A row "key value" of memory.stat; 0 when it is not there. */
static uint64_t read_stat(const char *folder, const char *key)
{
    char path[PATH + 80], line[200];
    uint64_t value = 0;
    size_t n = strlen(key);
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, key, n) == 0 && line[n] == ' ' && sscanf(line + n, "%20" SCNu64, &value) == 1)
            break;
    fclose(file);
    return value;
}

/* The tightest room from the group at mount + path up to mount. Cached files do not count: they are given back. */
static void walk(const char *mount, const char *path, int version, uint64_t *room, uint64_t *limit)
{
    char folder[PATH];
    size_t base = strlen(mount);
    snprintf(folder, sizeof folder, "%s%s", mount, strcmp(path, "/") == 0 ? "" : path);
    for (;;) {
        uint64_t most = read_number(folder, version == 2 ? "memory.max" : "memory.limit_in_bytes");
        uint64_t used = read_stat(folder, version == 2 ? "anon" : "total_rss"), kept = slack + most / 32;
        if (most < no_limit) {
            uint64_t left = most > used + kept ? most - used - kept : 0;
            if (left < *room)
                *room = left, *limit = most;
        }
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < base)
            return;
        *slash = '\0';
    }
}

/* Is "memory" one of the comma-separated controllers of a line "4:cpu,memory:/path"? */
static int has_memory(const char *line)
{
    const char *c = strchr(line, ':');
    size_t n;
    for (c = c ? c + 1 : ""; *c && *c != ':'; c += n + (c[n] == ',')) {
        n = strcspn(c, ",:");
        if (n == 6 && strncmp(c, "memory", 6) == 0)
            return 1;
    }
    return 0;
}

uint64_t cpl_memory_group_room(const char *groups, const char *mount, uint64_t *limit)
{
    char line[PATH], other[PATH];
    uint64_t room = UINT64_MAX;
    *limit = no_limit;
    FILE *file = fopen(groups, "re");
    if (!file)
        return room;
    snprintf(other, sizeof other, "%s/memory", mount);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        const char *path = strchr(line, '/');
        if (path && strncmp(line, "0::", 3) == 0)
            walk(mount, path, 2, &room, limit);
        else if (path && has_memory(line))
            walk(other, path, 1, &room, limit);
    }
    fclose(file);
    return room;
}

/* ---- limits of the process ---- */

/* Pages of address space and of data (private and writable) in use. */
static int read_use(uint64_t *space, uint64_t *data)
{
    long page = sysconf(_SC_PAGESIZE);
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return -1;
    int fields = fscanf(file, "%20" SCNu64 " %*u %*u %*u %*u %20" SCNu64, space, data);
    fclose(file);
    *space *= (uint64_t)page;
    *data *= (uint64_t)page;
    return fields == 2 ? 0 : -1;
}

static void add(cpl_memory_limit *l, const char *name, int resource, uint64_t used)
{
    struct rlimit r;
    if (getrlimit(resource, &r) != 0 || r.rlim_cur == RLIM_INFINITY || r.rlim_cur >= no_limit)
        return;
    uint64_t most = r.rlim_cur, room = most > used + slack ? most - used - slack : 0;
    if (!l->name || room < l->room)
        *l = (cpl_memory_limit){.name = name, .limit = most, .room = room, .mapped = 1};
}

cpl_memory_limit cpl_memory_limit_now(uint64_t released)
{
    cpl_memory_limit l = {.room = UINT64_MAX};
    uint64_t space, data, limit;
    if (read_use(&space, &data) == 0) {
        add(&l, "the address space (ulimit -v)", RLIMIT_AS, space > released ? space - released : 0);
        add(&l, "the data segment (ulimit -d)", RLIMIT_DATA, data);
    }
    uint64_t room = cpl_memory_group_room("/proc/self/cgroup", "/sys/fs/cgroup", &limit);
    if (room < l.room)
        l = (cpl_memory_limit){.name = "the memory of the control group", .limit = limit, .room = room};
    return l;
}
