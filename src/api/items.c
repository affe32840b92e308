/* items.c: pairs in groups: numbered by source, counted, and laid one group after the other. */
#include "api/evaluate.h"
#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"

/* group[i]: the item of pair i; starts[g + 1] counts the pairs of item g. Returns 0, or -1 without memory. */
static int number(cpl_items *items, const cpl_pair *pairs, int64_t n, int by_source, int64_t *group)
{
    cpl_map *map = cpl_map_new();
    int failed = !map;
    items->count = 0;
    for (int64_t i = 0; i < n && !failed; i++) {
        int is_new = 1;
        int64_t *of_source = by_source ? cpl_map_insert(map, pairs[i].source.text, pairs[i].source.length, &is_new)
                                       : &group[i];
        if (!of_source) {
            failed = 1;
            break;
        }
        if (is_new)
            *of_source = items->count++;
        group[i] = *of_source;
        items->starts[group[i] + 1]++;
    }
    cpl_map_free(map);
    return failed ? -1 : 0;
}

cpl_status cpl_items_make(cpl_items *items, const cpl_pair *pairs, int64_t n, int by_source, cpl_error *err)
{
    size_t size = (size_t)n + 1;
    int64_t *group = cpl_alloc(size, sizeof *group), *at = cpl_alloc(size, sizeof *at);
    items->starts = cpl_alloc(size, sizeof *items->starts);
    items->order = cpl_alloc(size, sizeof *items->order);
    int failed = !group || !at || !items->starts || !items->order || number(items, pairs, n, by_source, group);
    items->most = 0;
    for (int64_t g = 0; g < items->count && !failed; g++) {
        items->most = items->starts[g + 1] > items->most ? items->starts[g + 1] : items->most;
        items->starts[g + 1] += items->starts[g];
        at[g] = items->starts[g];
    }
    for (int64_t i = 0; i < n && !failed; i++)
        items->order[at[group[i]]++] = i;
    cpl_release(group);
    cpl_release(at);
    if (failed)
        CPL_FAIL(err, CPL_FAILED, "out of memory for %lld pairs", (long long)n);
    return CPL_OK;
}

void cpl_items_free(cpl_items *items)
{
    cpl_release(items->starts);
    cpl_release(items->order);
}
