/* version.c: what this build is made of, and the small functions of couplet.h that need no model. */
#include <stdlib.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/threads.h"
#include "config/config.h"
#include "couplet.h"
#include "kernel/kernel.h"

static const struct {
    const char *name, *gives;
    int present;
} libraries[] = {
#ifdef CPL_HAVE_YAML
    {"libyaml", "configurations", 1},
#else
    {"libyaml", "configurations", 0},
#endif
#ifdef CPL_HAVE_JANSSON
    {"jansson", "model files", 1},
#else
    {"jansson", "model files", 0},
#endif
#ifdef CPL_HAVE_UTF8PROC
    {"utf8proc", "Unicode text rules", 1},
#else
    {"utf8proc", "Unicode text rules", 0},
#endif
#ifdef CPL_HAVE_ZLIB
    {"zlib", ".gz files", 1},
#else
    {"zlib", ".gz files", 0},
#endif
#ifdef CPL_HAVE_HDF5
    {"hdf5", "weights from and to Keras", 1},
#else
    {"hdf5", "weights from and to Keras", 0},
#endif
#ifdef CPL_HAVE_SENTENCEPIECE
    {"sentencepiece", "subwords", 1},
#else
    {"sentencepiece", "subwords", 0},
#endif
};

char *cpl_version_text(void)
{
    cpl_str s = {0};
    cpl_error err = CPL_ERROR_INIT;
    const cpl_kernels *kernels = NULL, *all[8];
    cpl_str_add(&s, "couplet " CPL_VERSION_STRING "\n");
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        cpl_str_printf(&s, "%-9s %s%s\n", libraries[i].name, libraries[i].present ? "yes" : "missing: no ",
                       libraries[i].present ? "" : libraries[i].gives);
    if (cpl_kernels_pick(&kernels, &err) == CPL_OK) {
        cpl_str_printf(&s, "kernels   %s (can run:", kernels->name);
        int n = cpl_kernels_all(all, 8);
        for (int i = 0; i < n; i++)
            cpl_str_printf(&s, " %s", all[i]->name);
        cpl_str_add(&s, ")\n");
    } else {
        cpl_str_printf(&s, "kernels   none: %s\n", err.line[0]);
    }
    cpl_str_printf(&s, "threads   %d\n", cpl_processors());
    return cpl_str_take(&s);
}

char *cpl_config_help_text(void)
{
    cpl_str s = {0};
    cpl_config_help(&s);
    return cpl_str_take(&s);
}
