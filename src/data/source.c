/* source.c: [START] words [END], and for a model that was trained without masking padding behind. The only place that
 * puts padding into a row: data sets, lines and noise all close their rows here. */
#include "data/data.h"

size_t cpl_source_length(size_t words, int64_t pad_to)
{
    size_t length = words + 2, most = pad_to > 0 ? (size_t)pad_to : 0;
    return length < most ? most : length;
}

size_t cpl_source_close(int32_t *row, size_t words, int64_t pad_to)
{
    row[0] = CPL_ID_START;
    row[words + 1] = CPL_ID_END;
    return cpl_source_pad(row, words + 2, pad_to);
}

size_t cpl_source_pad(int32_t *row, size_t length, int64_t pad_to)
{
    while (pad_to > 0 && length < (size_t)pad_to)
        row[length++] = CPL_ID_PADDING;
    return length;
}

int64_t cpl_source_real(const int32_t *row, int64_t length)
{
    while (length > 0 && row[length - 1] == CPL_ID_PADDING)
        length--;
    return length;
}
