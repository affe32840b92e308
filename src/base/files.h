/* files.h: whole-file reading, mapping and atomic writing. */
#ifndef CPL_BASE_FILES_H
#define CPL_BASE_FILES_H

#include <stddef.h>
#include <stdint.h>
#include "couplet.h"

/* Reads all of a file ("-": standard input); a name ending in .gz is decompressed (zlib). *data is
 * NUL-terminated past length; free with cpl_release. */
cpl_status cpl_file_read(const char *path, char **data, size_t *length, cpl_error *err);

/* The same a piece at a time, for files that need not fit into memory: *got bytes, at most `most`; 0: the end. */
typedef struct cpl_stream cpl_stream;
cpl_status cpl_stream_open(cpl_stream **s, const char *path, cpl_error *err);
cpl_status cpl_stream_read(cpl_stream *s, void *to, size_t most, size_t *got, cpl_error *err);
void cpl_stream_close(cpl_stream *s); /* NULL is fine */

/* Maps a file read-only. An empty file is *data = "" with length 0. */
cpl_status cpl_file_map(const char *path, const uint8_t **data, size_t *length, cpl_error *err);
void cpl_file_unmap(const uint8_t *data, size_t length);

/* Atomic writing: a temporary name in the same folder, write, fsync, rename, fsync of the folder. Until
 * cpl_writer_commit succeeded the old file is untouched. */
typedef struct cpl_writer cpl_writer;
cpl_status cpl_writer_open(cpl_writer **w, const char *path, cpl_error *err);
cpl_status cpl_writer_write(cpl_writer *w, const void *bytes, size_t length, cpl_error *err);
/* Writes over the first bytes of what was written; only where it can (not in a pipe or a device). */
int cpl_writer_can_replace(const cpl_writer *w);
cpl_status cpl_writer_replace(cpl_writer *w, const void *bytes, size_t length, cpl_error *err);
cpl_status cpl_writer_commit(cpl_writer *w, cpl_error *err); /* frees w in either case */
void cpl_writer_abandon(cpl_writer *w);                      /* removes the temporary file; NULL is fine */

cpl_status cpl_file_write(const char *path, const void *bytes, size_t length, cpl_error *err); /* atomic */
int cpl_file_exists(const char *path);
cpl_status cpl_folder_make(const char *path, cpl_error *err); /* parents too; there already: fine */

/* Joins folder and name unless name is absolute or "-". The caller frees with cpl_release; NULL without memory. */
char *cpl_path_join(const char *folder, const char *name);
char *cpl_path_folder(const char *path); /* "a/b.yaml" → "a", "b.yaml" → "."; caller frees */

#endif
