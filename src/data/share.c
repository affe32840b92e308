/* share.c: which pairs are kept apart for validation, and what two splits have in common.
 *
 * Pairs with the same source (as the model sees it) form a group; a group is taken whole or not at all. Groups are
 * tried in the order of a hash of seed and text, and taken while they fit: a pure function of the seed and the set of
 * texts, so that lines may change places, and text rules may change, and the split is (nearly always) the same. */
#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/encode.h"

typedef struct member {
    uint64_t source, rank;
    size_t row;
} member;

typedef struct group {
    uint64_t rank;
    size_t first, size; /* in the sorted members */
} group;

static int by_source(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static int by_rank(const void *a, const void *b)
{
    const group *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

typedef struct grouping {
    member *members;
    group *groups;
    size_t count;
} grouping;

/* Sorts the rows into groups; a group's rank is its least member's. */
static void make_groups(const cpl_row_list *list, uint64_t seed, grouping *all)
{
    member *members = all->members;
    group *groups = all->groups;
    size_t n = list->count, count = 0;
    for (size_t i = 0; i < n; i++)
        members[i] = (member){list->keys[i].source, cpl_random_key(seed, list->keys[i].text, 0), i};
    qsort(members, n, sizeof *members, by_source);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || members[i].source != members[i - 1].source)
            groups[count++] = (group){members[i].rank, i, 0};
        groups[count - 1].size++;
    }
    qsort(groups, count, sizeof *groups, by_rank);
    all->count = count;
}

static void take(const group *g, const member *members, uint8_t *valid)
{
    for (size_t i = 0; i < g->size; i++)
        valid[members[g->first + i].row] = 1;
}

static cpl_status choose(size_t n, double share, const grouping *all, uint8_t *valid, cpl_error *err)
{
    const group *groups = all->groups;
    size_t count = all->count, taken = 0, smallest = 0, wanted = (size_t)(share * (double)n + 0.5);
    if (count < 2)
        CPL_FAIL(err, CPL_USAGE,
                 "cannot keep %.3g %% apart for validation: %zu usable pairs have %zu different sources, at least 2 "
                 "are needed" CPL_HINT "give validation pairs of their own: data.valid", share * 100, n, count);
    wanted = wanted < 1 ? 1 : wanted > n - 1 ? n - 1 : wanted;
    for (size_t i = 0; i < count; i++) {
        if (groups[i].size < groups[smallest].size)
            smallest = i;
        if (taken + groups[i].size > wanted)
            continue;
        take(&groups[i], all->members, valid);
        taken += groups[i].size;
    }
    if (taken == 0) /* every group is larger than what was asked for */
        take(&groups[smallest], all->members, valid);
    return CPL_OK;
}

cpl_status cpl_share_choose(const cpl_row_list *list, double share, uint64_t seed, uint8_t *valid, cpl_error *err)
{
    grouping all = {cpl_alloc(list->count, sizeof(member)), cpl_alloc(list->count, sizeof(group)), 0};
    cpl_status status;
    if (!all.members || !all.groups) {
        status = cpl_error_set(err, CPL_FAILED, "no memory to split %zu pairs", list->count);
    } else {
        make_groups(list, seed, &all);
        status = choose(list->count, share, &all, valid, err);
    }
    cpl_release(all.members);
    cpl_release(all.groups);
    return status;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

cpl_status cpl_share_overlap(const cpl_row_list *train, const cpl_row_list *valid, cpl_data_report *report,
                             cpl_error *err)
{
    size_t n = train->count;
    uint64_t *sources = cpl_alloc(n, sizeof *sources), *pairs = cpl_alloc(n, sizeof *pairs);
    if (!sources || !pairs) {
        cpl_release(sources);
        cpl_release(pairs);
        CPL_FAIL(err, CPL_FAILED, "no memory to compare training and validation");
    }
    for (size_t i = 0; i < n; i++) {
        sources[i] = train->keys[i].source;
        pairs[i] = train->keys[i].pair;
    }
    qsort(sources, n, sizeof *sources, by_value);
    qsort(pairs, n, sizeof *pairs, by_value);
    for (size_t i = 0; i < valid->count; i++) {
        report->shared_sources += bsearch(&valid->keys[i].source, sources, n, sizeof *sources, by_value) != NULL;
        report->duplicates += bsearch(&valid->keys[i].pair, pairs, n, sizeof *pairs, by_value) != NULL;
    }
    cpl_release(sources);
    cpl_release(pairs);
    return CPL_OK;
}
