/* json_tree.h: the tree behind json.h, shared by json.c (building), json_read.c and json_write.c. */
#ifndef CPL_BASE_JSON_TREE_H
#define CPL_BASE_JSON_TREE_H

#include "base/json.h"
#include "base/map.h"

enum { CPL_JSON_DEPTH_MAX = 64 };

/* What went wrong first while a value was built; told when it is written. */
typedef enum cpl_json_failure {
    CPL_JSON_FINE,
    CPL_JSON_NO_MEMORY,
    CPL_JSON_WRONG_KIND,
    CPL_JSON_BAD_TEXT
} cpl_json_failure;

typedef struct cpl_json_item {
    char *key; /* NULL in arrays */
    cpl_json *value;
} cpl_json_item;

struct cpl_json {
    cpl_json_kind kind;
    cpl_json_failure failure;
    int64_t integer; /* INT, BOOL */
    double real;
    int digits; /* significant digits to write; 0: the fewest that read back as the same number */
    char *text;
    size_t length;
    cpl_json_item *items; /* ARRAY, OBJECT */
    size_t size, capacity;
    cpl_map *index; /* key → place, for large objects */
};

cpl_json *cpl_json_new_text(const char *text, size_t length);
cpl_json *cpl_json_new_int(cpl_json_kind kind, int64_t value);
cpl_json *cpl_json_new_real(double value, int digits);
/* Appends without looking for the key; key is NULL for arrays. The child is the parent's from here. */
void cpl_json_append(cpl_json *parent, const char *key, cpl_json *child);
int cpl_json_is_utf8(const char *text, size_t length);

#endif
