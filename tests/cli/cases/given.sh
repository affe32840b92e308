# Vocabularies and word vectors by file: where they are from and how much they cover; what cannot be, with exit 2.
printf 'uno Dos\tone two\ngato Agua\tcat water\nsol sol\tsun sun\nuno gato\tone cat\n' >pairs.tsv
printf 'sol gato\tsun cat\nluna\tmoon\n' >valid.tsv
printf '\n[UNK]\n[START]\n[END]\nuno\nDos\nsol\ngato\n' >words.txt
printf '3 4\nuno 1 2 3 4\ndos -1 0.5 1e-3 .25 \nsol 0 0 0 0\n' >v.vec
cat >c.yaml <<'END'
model: {units: 4}
text: {source: {vocabulary: words.txt, vectors: v.vec}}
data: {train: pairs.tsv, valid: valid.tsv}
training: {max_steps: 2, batch_size: 2, threads: 1}
END
couplet plan c.yaml 2>&1 | sed -n '/^source\|^warning/p'
couplet plan c.yaml --json 2>/dev/null | grep -o '"vocabulary_from": *"[^"]*"\|"vectors": *{[^}]*}'
couplet train c.yaml -o m 2>&1 | sed -n '/^source/p'
try() { couplet plan c.yaml "$@"; echo "exit $?"; }
try --set text.source.min_count=2
try --set model.units=6
try --set text.source.vectors=none.vec
printf '3 4\nuno 1 2 3 4\ndos -1 0.5 1e-3\n' >v.vec
try
# The model needs neither file.
rm words.txt v.vec
echo 'uno Dos' | couplet generate m >/dev/null 2>&1 && echo generated
