/* map.c: open addressing over an array of entries in insertion order. Slots hold entry numbers, so
 * growing the table moves 8 bytes a slot and never touches a key. Nothing is ever removed. */
#include "base/map.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

enum { KEY_BLOCK_BYTES = 8192, FIRST_SLOTS = 16 };

typedef struct entry {
    const char *key;
    size_t length;
    uint64_t hash;
    int64_t value;
} entry;

struct cpl_map {
    cpl_arena *keys;
    entry *entries;
    size_t size, capacity;
    size_t *slots; /* entry number + 1; 0: empty. A power of two of them, at most 2/3 full */
    size_t slot_count;
};

cpl_map *cpl_map_new(void)
{
    cpl_map *m = cpl_alloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->keys = cpl_arena_new(KEY_BLOCK_BYTES);
    m->slots = cpl_alloc(FIRST_SLOTS, sizeof *m->slots);
    m->slot_count = FIRST_SLOTS;
    if (!m->keys || !m->slots) {
        cpl_map_free(m);
        return NULL;
    }
    return m;
}

void cpl_map_free(cpl_map *m)
{
    if (!m)
        return;
    cpl_arena_free(m->keys);
    cpl_release(m->entries);
    cpl_release(m->slots);
    cpl_release(m);
}

size_t cpl_map_size(const cpl_map *m)
{
    return m->size;
}

/* The slot that holds the key, or the empty slot where it belongs. */
static size_t find_slot(const cpl_map *m, const char *key, size_t length, uint64_t hash)
{
    size_t mask = m->slot_count - 1, at = (size_t)hash & mask;
    for (; m->slots[at]; at = (at + 1) & mask) {
        const entry *e = &m->entries[m->slots[at] - 1];
        if (e->hash == hash && e->length == length && (length == 0 || memcmp(e->key, key, length) == 0))
            break;
    }
    return at;
}

int64_t *cpl_map_find(const cpl_map *m, const char *key, size_t length)
{
    size_t at = find_slot(m, key, length, cpl_hash64(0, key, length));
    return m->slots[at] ? &m->entries[m->slots[at] - 1].value : NULL;
}

static int grow_slots(cpl_map *m)
{
    size_t count = m->slot_count * 2;
    size_t *slots = cpl_alloc(count, sizeof *slots);
    if (!slots)
        return -1;
    for (size_t i = 0; i < m->size; i++) {
        size_t at = (size_t)m->entries[i].hash & (count - 1);
        while (slots[at])
            at = (at + 1) & (count - 1);
        slots[at] = i + 1;
    }
    cpl_release(m->slots);
    m->slots = slots;
    m->slot_count = count;
    return 0;
}

int64_t *cpl_map_insert(cpl_map *m, const char *key, size_t length, int *is_new)
{
    uint64_t hash = cpl_hash64(0, key, length);
    size_t at = find_slot(m, key, length, hash);
    if (is_new)
        *is_new = m->slots[at] == 0;
    if (m->slots[at])
        return &m->entries[m->slots[at] - 1].value;
    if (cpl_grow(&m->entries, &m->capacity, m->size + 1, sizeof *m->entries) != 0)
        return NULL;
    if ((m->size + 1) * 3 > m->slot_count * 2) {
        if (grow_slots(m) != 0)
            return NULL;
        at = find_slot(m, key, length, hash);
    }
    const char *copy = cpl_arena_strndup(m->keys, key, length);
    if (!copy)
        return NULL;
    m->entries[m->size] = (entry){.key = copy, .length = length, .hash = hash};
    m->slots[at] = ++m->size;
    return &m->entries[m->size - 1].value;
}

const char *cpl_map_key(const cpl_map *m, size_t i, size_t *length)
{
    if (length)
        *length = m->entries[i].length;
    return m->entries[i].key;
}

int64_t cpl_map_value(const cpl_map *m, size_t i)
{
    return m->entries[i].value;
}

size_t cpl_map_bytes(const cpl_map *m)
{
    return sizeof *m + m->capacity * sizeof *m->entries + m->slot_count * sizeof *m->slots +
           cpl_arena_bytes(m->keys);
}
