# A configuration chosen from pairs: relative paths stay as they are given, and plan takes it without an edit.
printf 'go left\tL\ngo right\tR\ngo left twice\tL L\ngo right twice\tR R\n' >four
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do cat four; done >pairs.tsv
couplet new pairs.tsv >pairs.yaml; echo "exit $?"
cat pairs.yaml
couplet plan pairs.yaml >plan 2>warnings; echo "exit $?"
couplet new missing.tsv; echo "exit $?"
couplet new; echo "exit $?"
