#!/bin/sh
# make-sample.sh [FOLDER]: cuts data/sample from the Tatoeba English to Spanish set and turns its columns.
#
# FOLDER holds train.tsv, valid.tsv and test.tsv, English<TAB>Spanish (default: ../shared/data/tatoeba-en-es).
# Kept are short pairs of common words: at most 7 words in English and 8 in Spanish, each of which stands at
# least 15 times in train.tsv. All such pairs of train.tsv are taken, and 500 at even distances from each of
# valid.tsv and test.tsv. The parts of FOLDER share no sentence, so neither do those of the sample.
set -eu
cd "$(dirname "$0")/.."
LC_ALL=C
export LC_ALL
from=${1-../shared/data/tatoeba-en-es}
to=data/sample
mkdir -p "$to"

# part NAME COUNT: writes NAME.tsv, Spanish<TAB>English, in the order of the original; COUNT 0 takes all.
part() {
    awk -F '\t' -v most="$2" '
    # The words of a sentence, in lower case and without punctuation. awk may only know ASCII here.
    function words(text, list) {
        text = tolower(text)
        gsub(/Á/, "á", text); gsub(/É/, "é", text); gsub(/Í/, "í", text)
        gsub(/Ó/, "ó", text); gsub(/Ú/, "ú", text); gsub(/Ñ/, "ñ", text)
        gsub(/[.,;:!?"()$%-]|¿|¡/, " ", text)
        return split(text, list, " ")
    }
    { n = words($1, english); m = words($2, spanish) }
    pass == 1 {
        for (i = 1; i <= n; i++) seen_english[english[i]]++
        for (i = 1; i <= m; i++) seen_spanish[spanish[i]]++
        next
    }
    n > 7 || m > 8 { next }
    {
        for (i = 1; i <= n; i++) if (seen_english[english[i]] < 15) next
        for (i = 1; i <= m; i++) if (seen_spanish[spanish[i]] < 15) next
        kept[count++] = $2 "\t" $1
    }
    END {
        if (!most) most = count
        for (i = 0; i < most; i++) print kept[int(i * count / most)]
    }' pass=1 "$from/train.tsv" pass=2 "$from/$1.tsv" >"$to/$1.tsv"
}

part train 0
part valid 500
part test 500
wc -l -c "$to"/*.tsv
