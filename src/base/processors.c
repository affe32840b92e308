/* processors.c: how many processors this process may use. A container often sees all processors of the
 * machine but may use the time of a few: threads beyond that quota only wait for each other. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/threads.h"

/* The affinity mask may be wider than cpu_set_t: it is doubled until the kernel accepts its size. */
static int from_affinity(void)
{
    for (int wide = 1024; wide <= 1 << 16; wide *= 2) {
        cpu_set_t *set = CPU_ALLOC(wide);
        if (!set)
            break;
        size_t bytes = CPU_ALLOC_SIZE(wide);
        int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return count;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

/* Processors' worth of time that one group's cpu.max ("MAX PERIOD" or "max PERIOD") allows, rounded up;
 * 0: no limit. */
static int from_quota(const char *folder)
{
    char path[1200];
    long long quota = 0, period = 0;
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", folder);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    int fields = fscanf(file, "%18lld %18lld", &quota, &period);
    fclose(file);
    if (fields != 2 || quota <= 0 || period <= 0)
        return 0;
    long long processors = (quota + period - 1) / period;
    return processors < 1 << 16 ? (int)processors : 0;
}

/* The path of this process's group in the unified hierarchy; "" (the root) when unknown. */
static void find_group(char *group, size_t size)
{
    char line[1100];
    group[0] = '\0';
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "0::/", 4) == 0) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(group, size, "%s", line + 3);
        }
    fclose(file);
}

/* The tightest quota on the way from our group to the root holds. */
int cpl_processors(void)
{
    char group[1100];
    int processors = from_affinity();
    find_group(group, sizeof group);
    for (;;) {
        int quota = from_quota(group);
        if (quota > 0 && quota < processors)
            processors = quota;
        char *slash = strrchr(group, '/');
        if (!slash)
            break;
        *slash = '\0';
    }
    return processors;
}
