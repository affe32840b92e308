/* map.h: byte strings to 64-bit numbers. Keys are copied; iteration is in insertion order. */
#ifndef CPL_BASE_MAP_H
#define CPL_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

typedef struct cpl_map cpl_map;

cpl_map *cpl_map_new(void);
void cpl_map_free(cpl_map *m);
size_t cpl_map_size(const cpl_map *m);
/* The value's place, or NULL when the key is not there. Valid until the next insert. */
int64_t *cpl_map_find(const cpl_map *m, const char *key, size_t length);
/* The value's place, inserted with 0 when new (*is_new, may be NULL). NULL without memory. */
int64_t *cpl_map_insert(cpl_map *m, const char *key, size_t length, int *is_new);
/* Entry i in insertion order. The key is NUL-terminated and lives as long as the map. */
const char *cpl_map_key(const cpl_map *m, size_t i, size_t *length);
int64_t cpl_map_value(const cpl_map *m, size_t i);
size_t cpl_map_bytes(const cpl_map *m);

#endif
