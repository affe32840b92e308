/* yaml.c: YAML text into a tree of values. The only file that knows libyaml.
 *
 * The tree is what a configuration needs and no more: groups with text keys, lists, text. Types are decided by the
 * options. Duplicate keys, several documents and runaway aliases are refused here. */
#include "config/value.h"

#include "base/error.h"

#ifndef CPL_HAVE_YAML

cpl_status cpl_value_from_yaml(cpl_value **root, cpl_arena *arena, const char *text, size_t length, const char *path,
                               cpl_error *err)
{
    (void)arena, (void)text, (void)length, (void)path;
    *root = NULL;
    CPL_FAIL(err, CPL_FAILED, "this build has no YAML reader (libyaml was missing when it was built)");
}

#else

#include <string.h>
#include <yaml.h>

enum {
    MAX_DEPTH = 16,   /* a configuration needs 4; also ends an alias to its own parent */
    MAX_NODES = 10000 /* aliases are copied: this bounds what nested ones can grow to */
};

typedef struct reader {
    yaml_document_t *document;
    cpl_arena *arena;
    const char *path;
    int nodes;
} reader;

/* "m.yaml:3: " or nothing; for use with "%s". */
static const char *place(const reader *r, int line, char buffer[CPL_ERROR_WIDTH])
{
    buffer[0] = '\0';
    if (r->path != NULL)
        snprintf(buffer, CPL_ERROR_WIDTH, "%.300s:%d: ", r->path, line);
    return buffer;
}

static cpl_status read_node(reader *r, int index, int depth, cpl_value **value, cpl_error *err);

static cpl_status read_text(const reader *r, const yaml_node_t *node, cpl_value *v, cpl_error *err)
{
    char where[CPL_ERROR_WIDTH];
    const char *text = (const char *)node->data.scalar.value;
    size_t length = node->data.scalar.length;
    int plain = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (memchr(text, '\0', length) != NULL)
        CPL_FAIL(err, CPL_USAGE, "%sa value holds a NUL byte", place(r, v->line, where));
    v->text = cpl_arena_strndup(r->arena, text, length);
    v->kind = plain && (length == 0 || strcmp(text, "~") == 0 || strcmp(text, "null") == 0) ? CPL_VALUE_NULL
                                                                                            : CPL_VALUE_TEXT;
    if (v->text == NULL)
        CPL_FAIL(err, CPL_FAILED, "no memory for the configuration");
    return CPL_OK;
}

static cpl_status read_list(reader *r, const yaml_node_t *node, int depth, cpl_value *v, cpl_error *err)
{
    cpl_value **last = &v->first;
    v->kind = CPL_VALUE_LIST;
    for (const yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++) {
        cpl_status status = read_node(r, *i, depth + 1, last, err);
        if (status != CPL_OK)
            return status;
        last = &(*last)->next;
    }
    return CPL_OK;
}

/* The key of one pair, which must be text and new in its group. */
static cpl_status read_key(reader *r, int index, const cpl_value *group, const char **key, cpl_error *err)
{
    char where[CPL_ERROR_WIDTH], shown[96];
    const yaml_node_t *node = yaml_document_get_node(r->document, index);
    int line = (int)node->start_mark.line + 1;
    const char *text = node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
    if (text == NULL || strlen(text) != node->data.scalar.length)
        CPL_FAIL(err, CPL_USAGE, "%sa key must be a word", place(r, line, where));
    for (const cpl_value *other = group->first; other != NULL; other = other->next)
        if (other->key != NULL && strcmp(other->key, text) == 0)
            CPL_FAIL(err, CPL_USAGE, "%skey '%s' appears twice in its group, first with a value on line %d",
                     place(r, line, where), cpl_escape(shown, sizeof shown, text, strlen(text)), other->line);
    *key = cpl_arena_strndup(r->arena, text, strlen(text));
    if (*key == NULL)
        CPL_FAIL(err, CPL_FAILED, "no memory for the configuration");
    return CPL_OK;
}

static cpl_status read_group(reader *r, const yaml_node_t *node, int depth, cpl_value *v, cpl_error *err)
{
    cpl_value **last = &v->first;
    v->kind = CPL_VALUE_GROUP;
    for (const yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++) {
        const char *key = NULL;
        cpl_value *child = NULL;
        cpl_status status = read_key(r, p->key, v, &key, err);
        if (status == CPL_OK)
            status = read_node(r, p->value, depth + 1, &child, err);
        if (status != CPL_OK)
            return status;
        child->key = key;
        child->line = (int)yaml_document_get_node(r->document, p->key)->start_mark.line + 1;
        *last = child;
        last = &child->next;
    }
    return CPL_OK;
}

static cpl_status read_node(reader *r, int index, int depth, cpl_value **value, cpl_error *err)
{
    char where[CPL_ERROR_WIDTH];
    const yaml_node_t *node = yaml_document_get_node(r->document, index);
    cpl_value *v = cpl_arena_alloc(r->arena, sizeof *v);
    if (v == NULL)
        CPL_FAIL(err, CPL_FAILED, "no memory for the configuration");
    v->line = (int)node->start_mark.line + 1;
    if (depth > MAX_DEPTH || ++r->nodes > MAX_NODES)
        CPL_FAIL(err, CPL_USAGE, "%sthe configuration is nested more than %d deep or has more than %d values",
                 place(r, v->line, where), MAX_DEPTH, MAX_NODES);
    *value = v;
    if (node->type == YAML_SCALAR_NODE)
        return read_text(r, node, v, err);
    return node->type == YAML_SEQUENCE_NODE ? read_list(r, node, depth, v, err) : read_group(r, node, depth, v, err);
}

/* What libyaml says of text that is not YAML. */
static cpl_status syntax_error(const reader *r, const yaml_parser_t *parser, cpl_error *err)
{
    char where[CPL_ERROR_WIDTH];
    const char *problem = parser->problem == NULL ? "not YAML" : parser->problem;
    if (parser->error == YAML_MEMORY_ERROR)
        CPL_FAIL(err, CPL_FAILED, "no memory for the configuration");
    if (parser->error == YAML_READER_ERROR)
        CPL_FAIL(err, CPL_USAGE, "%s%s at byte %zu", r->path == NULL ? "" : place(r, 1, where), problem,
                 parser->problem_offset);
    place(r, (int)parser->problem_mark.line + 1, where);
    if (memchr(parser->buffer.start, '\t', (size_t)(parser->buffer.last - parser->buffer.start)) != NULL)
        CPL_FAIL(err, CPL_USAGE, "%snot valid YAML: %s" CPL_HINT "YAML is indented with spaces; the file has tabs",
                 where, problem);
    CPL_FAIL(err, CPL_USAGE, "%snot valid YAML: %s", where, problem);
}

static cpl_status read_document(reader *r, yaml_parser_t *parser, cpl_value **root, cpl_error *err)
{
    yaml_document_t document, second;
    char where[CPL_ERROR_WIDTH];
    cpl_status status = CPL_OK;
    if (!yaml_parser_load(parser, &document))
        return syntax_error(r, parser, err);
    const yaml_node_t *top = yaml_document_get_root_node(&document);
    r->document = &document;
    if (top != NULL)
        status = read_node(r, 1, 1, root, err);
    else if ((*root = cpl_arena_alloc(r->arena, sizeof **root)) == NULL)
        status = cpl_error_set(err, CPL_FAILED, "no memory for the configuration");
    yaml_document_delete(&document);
    if (status != CPL_OK || top == NULL)
        return status;
    if (!yaml_parser_load(parser, &second))
        return syntax_error(r, parser, err);
    const yaml_node_t *more = yaml_document_get_root_node(&second);
    if (more != NULL)
        status = cpl_error_set(err, CPL_USAGE, "%sa second YAML document begins, expected one",
                               place(r, (int)more->start_mark.line + 1, where));
    yaml_document_delete(&second);
    return status;
}

cpl_status cpl_value_from_yaml(cpl_value **root, cpl_arena *arena, const char *text, size_t length, const char *path,
                               cpl_error *err)
{
    reader r = {NULL, arena, path, 0};
    yaml_parser_t parser;
    *root = NULL;
    if (!yaml_parser_initialize(&parser))
        CPL_FAIL(err, CPL_FAILED, "no memory for the configuration");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    cpl_status status = read_document(&r, &parser, root, err);
    yaml_parser_delete(&parser);
    return status;
}

#endif
