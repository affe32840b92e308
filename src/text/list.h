/* list.h: filling a cpl_token_list; for the files of this room only. */
#ifndef CPL_TEXT_LIST_H
#define CPL_TEXT_LIST_H

#include "text/text.h"

/* Appends a token: 0, or -1 without memory. text NULL: the token is the next `length` of list->bytes, which may still
 * move; cpl_token_settle gives those tokens, in order, their places. */
int cpl_token_push(cpl_token_list *list, const char *text, size_t length);
void cpl_token_settle(cpl_token_list *list);

#endif
